#include "diagnosis/oom/text_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace vramtrack {
namespace {

constexpr long double kGibi = 1024.0L * 1024.0L * 1024.0L;

PrintedSize sum_of(const std::vector<ProcessUse>& processes) {
  PrintedSize sum;
  for (const ProcessUse& process : processes) sum = sum + process.used;
  return sum;
}

// In a container the job's own process may be printed under a foreign number, with no "this
// process" clause. It is the line that holds at least what the pool holds, where counting all lines
// as others would exceed the card.
void find_own_process(const OomMessage& message, TextDiagnosis& diagnosis) {
  OomNumbers& n = diagnosis.numbers;
  auto& others = diagnosis.other_processes;
  if (message.sizes.contains(SizeKind::process) || others.empty() || !n.total || !n.reserved)
    return;
  const PrintedSize everyone = sum_of(others) + *n.reserved + n.free.value_or(PrintedSize{});
  if (everyone.low() <= n.total->high()) return;
  auto own = others.end();
  for (auto it = others.begin(); it != others.end(); ++it) {
    if (it->used.high() < n.reserved->low()) continue;
    if (own == others.end() || it->used.bytes < own->used.bytes) own = it;
  }
  if (own == others.end()) return;
  n.own_process = own->used;
  others.erase(own);
  diagnosis.own_process_found_among_others = true;
}

// "3g.20gb": a slice of twenty (decimal or binary, the upper bound counts).
std::optional<PrintedSize> mig_slice(const std::string& profile) {
  const size_t dot = profile.find('.');
  if (dot == std::string::npos) return std::nullopt;
  unsigned size = 0;
  const char* const first = profile.data() + dot + 1;
  std::from_chars(first, profile.data() + profile.size(), size);
  if (size == 0) return std::nullopt;
  return PrintedSize::exact(static_cast<long double>(size) * kGibi);
}

void gather_numbers(const OomMessage& message, TextDiagnosis& diagnosis) {
  OomNumbers& n = diagnosis.numbers;
  n.ask = message.size(SizeKind::ask);
  n.total = message.size(SizeKind::total);
  n.free = message.size(SizeKind::free);
  n.allocated = message.size(SizeKind::allocated);
  n.reserved = message.size(SizeKind::reserved);
  n.limit = message.size(SizeKind::limit);
  n.own_process = message.size(SizeKind::process);
  const auto unallocated = message.size(SizeKind::unallocated);
  if (!n.reserved && n.allocated && unallocated) n.reserved = *n.allocated + *unallocated;
  // MPS counts what it holds as allocated plus the other allocations of the process.
  if (const auto other = message.size(SizeKind::other_in_use); other && n.allocated) {
    n.reserved = *n.allocated + *other;
    n.allocated = n.reserved;
  }
  diagnosis.other_processes = message.processes;
  find_own_process(message, diagnosis);
  // Where NVML cannot tell (WSL), a use is printed as "not available" read as a number.
  std::erase_if(diagnosis.other_processes,
                [](const ProcessUse& process) { return process.used.underflowed(); });
  if (!diagnosis.other_processes.empty()) n.other_processes = sum_of(diagnosis.other_processes);
}

void conclude(OomVerdict verdict, Confidence confidence, std::string reason, OomAudit& audit) {
  audit.verdict = verdict;
  audit.confidence = confidence;
  audit.reason = std::move(reason);
}

std::string text(const PrintedSize& size) {
  return bytes_text(size.bytes);
}

// vLLM, SGLang and others: what the engine wanted within its share of the card.
void audit_budget(const OomMessage& message, OomAudit& result) {
  const auto budget = message.size(SizeKind::budget);
  const auto weights = message.size(SizeKind::weights);
  const auto room = message.size(SizeKind::kv_cache);
  const auto needed = message.size(SizeKind::kv_needed);
  const auto free = message.size(SizeKind::free);
  const auto total = message.size(SizeKind::total);
  if (free && total) {
    const PrintedSize taken = *total - *free;
    if (taken.bytes > threshold::kShareThatMatters * total->bytes &&
        taken.bytes > threshold::kUsualOutside) {
      return conclude(OomVerdict::other_process,
                      taken.bytes >= threshold::kShareThatDecides * total->bytes
                          ? Confidence::high
                          : Confidence::medium,
                      fmt::format("before the engine allocated anything, {} of {} were in use",
                                  text(taken), text(*total)),
                      result);
    }
    return conclude(
        OomVerdict::limit, Confidence::medium,
        fmt::format("{} of {} are free, the engine was told to use {}: more than is there",
                    text(*free), text(*total), budget ? text(*budget) : "more"),
        result);
  }
  if (needed && room) {
    return conclude(
        OomVerdict::capacity, Confidence::high,
        fmt::format("one request of full length needs {} of KV cache, {} are left for it",
                    text(*needed), text(*room)),
        result);
  }
  if (weights && room) {
    PrintedSize used = *weights;
    if (const auto other = message.size(SizeKind::non_torch)) used = used + *other;
    if (const auto peak = message.size(SizeKind::activation_peak)) used = used + *peak;
    std::string reason = fmt::format("weights, activation peak and the rest take {}", text(used));
    if (budget) reason += fmt::format(" of a budget of {}", text(*budget));
    return conclude(OomVerdict::capacity, Confidence::high,
                    reason + fmt::format(": {} are left for the KV cache", text(*room)), result);
  }
  if (room && room->bytes <= 0) {
    return conclude(OomVerdict::capacity, Confidence::medium,
                    fmt::format("{} are left for the KV cache", text(*room)), result);
  }
  if (message.details.contains("longest_that_fits")) {
    return conclude(
        OomVerdict::capacity, Confidence::medium,
        fmt::format("the KV cache holds {} tokens, one request of full length has {}",
                    message.details.at("longest_that_fits"),
                    message.details.contains("max_model_len") ? message.details.at("max_model_len")
                                                              : "more"),
        result);
  }
  if (message.details.contains("prefill_tokens")) {
    return conclude(OomVerdict::capacity, Confidence::medium,
                    fmt::format("beside the weights there is no room for a batch of {} prefill "
                                "tokens, which the engine tries when it starts",
                                message.details.at("prefill_tokens")),
                    result);
  }
  if (message.details.contains("device_map")) {
    conclude(OomVerdict::capacity, Confidence::medium,
             "the weights, quantised as they are, do not all fit into what was free on the devices "
             "when the model was placed",
             result);
    result.also_possible.push_back(OomVerdict::other_process);
    return;
  }
  conclude(
      OomVerdict::capacity, Confidence::low,
      "weights and activations leave no room in the engine's share of the card; whether the share "
      "or the card is too small the message does not say",
      result);
  result.also_possible.push_back(OomVerdict::limit);
}

// TensorFlow's and JAX's pool, with its own totals: the device is not in them.
void audit_bfc(const OomMessage& message, OomAudit& result) {
  const auto ask = message.size(SizeKind::ask);
  const auto limit = message.size(SizeKind::limit);
  const auto used = message.size(SizeKind::allocated);
  const auto largest = message.size(SizeKind::largest_free);
  const auto region = message.size(SizeKind::reserved);
  if (!ask || !limit || !used) return;
  if (used->bytes + ask->bytes > limit->bytes) {
    return conclude(OomVerdict::capacity, Confidence::medium,
                    fmt::format("{} are live in a pool that may grow to {}; {} more do not fit",
                                text(*used), text(*limit), text(*ask)),
                    result);
  }
  if (region && largest && largest->bytes > 0 && largest->bytes < ask->bytes &&
      region->bytes - used->bytes >= ask->bytes) {
    return conclude(
        OomVerdict::fragmentation, Confidence::medium,
        fmt::format("the pool holds {} unused, the largest piece is {}; {} were asked for",
                    bytes_text(region->bytes - used->bytes), text(*largest), text(*ask)),
        result);
  }
  conclude(
      OomVerdict::undetermined, Confidence::low,
      fmt::format("the pool may grow to {} and {} are live, so {} more should fit: either it could "
                  "not grow (somebody else holds the card) or its free memory is in pieces",
                  text(*limit), text(*used), text(*ask)),
      result);
  result.also_possible = {OomVerdict::limit, OomVerdict::other_process, OomVerdict::fragmentation};
}

void audit_tensorrt(const OomMessage& message, const OomText& log, OomAudit& result) {
  const auto ask = message.size(SizeKind::ask);
  const auto slice = mig_slice(log.mig_profile);
  if (ask && slice && ask->bytes > slice->bytes) {
    return conclude(
        OomVerdict::limit, Confidence::high,
        fmt::format("the engine wants {} in one block, the MIG slice has {}: it can never "
                    "fit",
                    text(*ask), text(*slice)),
        result);
  }
  if (!ask || ask->bytes < kGibi) return;
  conclude(
      OomVerdict::limit, Confidence::low,
      fmt::format("the engine wants {} in one block, a size fixed when it was built (profiles, "
                  "workspace): on a device or slice with less than that it can never run. How "
                  "large this one is the message does not say",
                  text(*ask)),
      result);
  result.also_possible = {OomVerdict::capacity, OomVerdict::other_process};
}

void audit_host(const OomMessage& message, OomAudit& result) {
  const auto ask = message.size(SizeKind::ask);
  std::string reason = "host memory ran out, not the GPU's: " + message.form;
  if (ask) reason += fmt::format(" ({} asked for)", text(*ask));
  const auto required = message.size(SizeKind::required);
  const auto available = message.size(SizeKind::available);
  if (required && available)
    reason += fmt::format(" ({} of {})", text(*required), text(*available));
  const bool shared = message.details.contains("unified");
  if (shared) {
    reason = fmt::format(
        "CPU and GPU share one memory here, and it refused {}; the same line can be a "
        "harmless warning where a retry follows",
        ask ? text(*ask) : "a request");
  }
  conclude(OomVerdict::host_memory, shared ? Confidence::low : Confidence::high, reason, result);
  if (message.details.contains("failing_call")) result.confidence = Confidence::medium;
}

void audit_other_kinds(const OomMessage& message, OomAudit& result) {
  switch (message.kind) {
    case MessageKind::corrupt:
      return conclude(
          OomVerdict::healthy, Confidence::high,
          "the size asked for is nonsense (more than 2^60 bytes): memory is not the "
          "problem. A size that was read from uninitialised or received data, often after "
          "a peer timed out",
          result);
    case MessageKind::not_memory:
      return conclude(
          OomVerdict::healthy, Confidence::high,
          fmt::format(
              "no device memory is short: a kernel wants {} bytes of {} and the hardware has {}",
              message.sizes.contains(SizeKind::required)
                  ? fmt::format("{:.0f}",
                                static_cast<double>(message.size(SizeKind::required)->bytes))
                  : "more",
              message.details.contains("resource") ? message.details.at("resource")
                                                   : "an on-chip resource",
              message.sizes.contains(SizeKind::available)
                  ? fmt::format("{:.0f}",
                                static_cast<double>(message.size(SizeKind::available)->bytes))
                  : "less"),
          result);
    case MessageKind::masked:
      conclude(
          OomVerdict::undetermined, Confidence::low,
          message.library == "PyTorch"
              ? "this assertion stands in the path that PyTorch takes after a failed allocation, "
                "where it asks NVML for other processes: an OOM whose own message was lost (MIG, "
                "Jetson, a container that hides NVML)"
              : "a handle that cannot be created is an OOM more often than not: the card was full "
                "when the library wanted its workspace",
          result);
      return;
    default:
      return;
  }
}

void audit_message(const OomMessage& message, TextDiagnosis& diagnosis) {
  OomAudit& result = diagnosis.audit;
  switch (message.kind) {
    case MessageKind::budget:
      return audit_budget(message, result);
    case MessageKind::host:
      return audit_host(message, result);
    case MessageKind::corrupt:
    case MessageKind::not_memory:
    case MessageKind::masked:
      return audit_other_kinds(message, result);
    case MessageKind::device:
      break;
  }
  result = audit_oom(diagnosis.numbers);
  if (message.library == "TensorRT") return audit_tensorrt(message, diagnosis.text, result);
  if (message.library == "JAX/XLA" || message.library == "TensorFlow") {
    if (message.sizes.contains(SizeKind::planned) && message.sizes.contains(SizeKind::total)) {
      return conclude(
          OomVerdict::capacity, Confidence::high,
          fmt::format("the compiled program needs {}, the device has {}",
                      text(*message.size(SizeKind::planned)), text(*message.size(SizeKind::total))),
          result);
    }
    if (message.sizes.contains(SizeKind::limit)) {
      result = OomAudit{};
      return audit_bfc(message, result);
    }
  }
  if (message.details.contains("limit") && message.details.at("limit") == "size of one buffer") {
    return conclude(
        OomVerdict::limit, Confidence::high,
        fmt::format("one buffer of {} is more than Metal allows a buffer, whatever is free",
                    text(diagnosis.numbers.ask.value_or(PrintedSize{}))),
        result);
  }
  if (message.library == "RMM" && message.details.contains("pool")) {
    return conclude(OomVerdict::limit, Confidence::medium,
                    "RMM's pool has reached the maximum it was given", result);
  }
  if (message.library == "llama.cpp/ggml" && diagnosis.numbers.ask && diagnosis.numbers.free &&
      diagnosis.numbers.ask->low() > diagnosis.numbers.free->high()) {
    return conclude(OomVerdict::capacity, Confidence::medium,
                    fmt::format("one buffer of {} against {} free before the model was loaded",
                                text(*diagnosis.numbers.ask), text(*diagnosis.numbers.free)),
                    result);
  }
}

void add_remarks(const OomMessage& message, TextDiagnosis& diagnosis) {
  auto& remarks = diagnosis.audit.remarks;
  if (diagnosis.own_process_found_among_others) {
    remarks.emplace_back(
        "the process that the message names by number is this one (a container shows foreign "
        "numbers): "
        "it holds at least what the pool holds, and the card could not hold both");
  }
  if (const auto graphs = message.size(SizeKind::private_pools)) {
    remarks.push_back(
        fmt::format("{} of the allocated memory are private pools (CUDA graphs)", text(*graphs)));
  }
  const bool cuda = message.library == "PyTorch" || message.library == "PyTorch (ROCm)";
  if (cuda && message.kind == MessageKind::device && diagnosis.audit.held &&
      diagnosis.audit.held->bytes >= 0 && message.form.find("2.") != std::string::npos &&
      diagnosis.audit.verdict != OomVerdict::fragmentation &&
      diagnosis.audit.verdict != OomVerdict::undetermined) {
    remarks.push_back(
        fmt::format("the hint about fragmentation at the end of PyTorch's message is always "
                    "printed; here it could "
                    "give back {} at most",
                    text(*diagnosis.audit.held)));
  }
  if (message.library.starts_with("PyTorch") && message.kind == MessageKind::device) {
    remarks.emplace_back(
        "empty_cache() would not have helped: PyTorch empties its cache before it gives "
        "up");
  }
}

bool same_numbers(const OomMessage& a, const OomMessage& b) {
  if (a.library != b.library || a.sizes.size() != b.sizes.size()) return false;
  return std::equal(a.sizes.begin(), a.sizes.end(), b.sizes.begin(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.bytes == y.second.bytes;
                    });
}

}  // namespace

std::optional<TextDiagnosis> diagnose_text(std::string_view log) {
  TextDiagnosis diagnosis;
  diagnosis.text = read_oom_text(log);
  if (diagnosis.text.messages.empty()) return std::nullopt;
  const OomMessage& first = diagnosis.text.messages.front();
  diagnosis.further = diagnosis.text.messages.size() - 1 + diagnosis.text.more;
  for (size_t i = 1; i < diagnosis.text.messages.size(); ++i) {
    if (same_numbers(first, diagnosis.text.messages[i])) ++diagnosis.identical;
  }
  gather_numbers(first, diagnosis);
  audit_message(first, diagnosis);
  add_remarks(first, diagnosis);

  AdviceContext context;
  context.library = first.library;
  context.form = first.form;
  context.kind = first.kind;
  context.numbers = diagnosis.numbers;
  context.audit = diagnosis.audit;
  context.details = first.details;
  context.sizes = first.sizes;
  context.settings = diagnosis.text.settings;
  context.windows = diagnosis.text.windows;
  context.mig_profile = diagnosis.text.mig_profile;
  diagnosis.advice = advise(context);
  return diagnosis;
}

}  // namespace vramtrack
