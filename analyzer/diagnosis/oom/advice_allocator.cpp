// Settings of PyTorch's caching allocator.
#include <fmt/format.h>

#include <array>

#include "diagnosis/oom/advice_rules.h"

namespace vramtrack {
namespace {

bool caching_allocator(const AdviceContext& c) {
  return (c.library == "PyTorch" || c.library == "PyTorch (ROCm)") &&
         c.kind == MessageKind::device && c.form.find("cudaMallocAsync") == std::string::npos;
}

bool fragmented(const AdviceContext& c) {
  if (c.audit.verdict == OomVerdict::fragmentation) return true;
  for (const OomVerdict verdict : c.audit.also_possible) {
    if (verdict == OomVerdict::fragmentation) return true;
  }
  return false;
}

// PyTorch before 2.1 has no expandable segments; its wording tells.
bool before_2_1(const AdviceContext& c) {
  return c.form.find("1.0 to 1.3") != std::string::npos ||
         c.form.find("1.4 to 1.9") != std::string::npos ||
         c.form.find("1.10 to 2.0") != std::string::npos;
}

// The best of the values that were tried.
const ReplayedSaving* replayed(const AdviceContext& c, std::string_view setting) {
  const ReplayedSaving* best = nullptr;
  for (const ReplayedSaving& saving : c.replayed) {
    if (!saving.setting.starts_with(setting)) continue;
    if (best == nullptr || saving.saved_bytes > best->saved_bytes) best = &saving;
  }
  return best;
}

// A replay that saves nothing and avoids nothing speaks against a setting.
bool replay_refutes(const ReplayedSaving* saving) {
  return saving != nullptr && saving->saved_bytes <= 0 && !saving->oom_avoided.value_or(false);
}

// A predicted saving: replayed where the requests are known, else the most that holes can give.
void set_saving(const AdviceContext& c, std::string_view setting, Advice& advice) {
  advice.in_force_known = c.settings_known;
  if (const ReplayedSaving* saved = replayed(c, setting)) {
    advice.saving = saved->saved_bytes;
    advice.basis = Basis::replayed;
    advice.enough = saved->oom_avoided;
  } else if (c.audit.held) {
    advice.saving = c.audit.held->bytes;
    advice.at_most = true;
    advice.basis = Basis::computed;
  }
}

std::optional<Advice> expandable_segments(const AdviceContext& c) {
  if (!caching_allocator(c) || !fragmented(c) || c.windows || before_2_1(c)) return std::nullopt;
  if (setting_in_force(c, "expandable_segments")) return std::nullopt;
  if (replay_refutes(replayed(c, "expandable_segments"))) return std::nullopt;
  Advice advice;
  advice.change =
      "set PYTORCH_ALLOC_CONF=expandable_segments:True (before 2.9: "
      "PYTORCH_CUDA_ALLOC_CONF)";
  advice.evidence = c.audit.held ? fmt::format("{} are reserved and unused, in pieces",
                                               bytes_text(c.audit.held->bytes))
                                 : "reserved memory is in pieces";
  advice.cost =
      "no sharing of tensors between processes by older versions, none with pluggable "
      "allocators and sleep modes built on them";
  set_saving(c, "expandable_segments", advice);
  return advice;
}

std::optional<Advice> max_split_size(const AdviceContext& c) {
  if (!caching_allocator(c) || !fragmented(c)) return std::nullopt;
  if (setting_in_force(c, "max_split_size_mb") || setting_in_force(c, "expandable_segments")) {
    return std::nullopt;  // with expandable segments it makes matters worse
  }
  if (c.form.find("1.0 to 1.3") != std::string::npos ||
      c.form.find("1.4 to 1.9") != std::string::npos) {
    return std::nullopt;
  }
  const ReplayedSaving* saved = replayed(c, "max_split_size_mb");
  if (replay_refutes(saved)) return std::nullopt;
  Advice advice;
  advice.change = saved != nullptr
                      ? "set PYTORCH_ALLOC_CONF=" + saved->setting
                      : "set max_split_size_mb in PYTORCH_ALLOC_CONF to a little below "
                        "the request that fails";
  advice.evidence = "large segments are split by smaller blocks and cannot be given back";
  advice.cost =
      "large blocks are no longer split: more memory per large request, slower allocation; "
      "never together with expandable_segments";
  if (saved != nullptr) {
    advice.saving = saved->saved_bytes;
    advice.basis = Basis::replayed;
    advice.enough = saved->oom_avoided;
  }
  advice.in_force_known = c.settings_known;
  return advice;
}

std::optional<Advice> allocate_largest_first(const AdviceContext& c) {
  if (!caching_allocator(c) || c.audit.verdict != OomVerdict::fragmentation || !c.audit.held) {
    return std::nullopt;
  }
  if (!before_2_1(c) && !setting_in_force(c, "expandable_segments")) return std::nullopt;
  Advice advice;
  advice.change = "allocate the largest tensors first and reuse them; pad shapes to a few sizes";
  advice.evidence =
      fmt::format("{} are held in pieces by blocks that live longer than their neighbours",
                  bytes_text(c.audit.held->bytes));
  advice.saving = c.audit.held->bytes;
  advice.at_most = true;
  advice.basis = Basis::computed;
  advice.cost = "a change of the program; padding computes on padding";
  return advice;
}

std::optional<Advice> raise_fraction(const AdviceContext& c) {
  if (!caching_allocator(c) || c.audit.verdict != OomVerdict::limit || !c.numbers.limit) {
    return std::nullopt;
  }
  Advice advice;
  advice.change =
      "raise the memory fraction (torch.cuda.set_per_process_memory_fraction, or "
      "per_process_memory_fraction in the allocator's settings)";
  advice.evidence =
      fmt::format("the pool may hold {} and holds {}", bytes_text(c.numbers.limit->bytes),
                  c.numbers.reserved ? bytes_text(c.numbers.reserved->bytes) : "as much");
  if (c.numbers.free) {
    advice.saving = c.numbers.free->bytes;
    advice.at_most = true;
    advice.basis = Basis::measured;
  }
  advice.cost = "takes from whoever the limit was to protect";
  advice.in_force_known = true;
  return advice;
}

std::optional<Advice> fewer_graphs(const AdviceContext& c) {
  const auto graphs = c.sizes.find(SizeKind::private_pools);
  if (graphs == c.sizes.end() || !c.audit.shortfall) return std::nullopt;
  if (graphs->second.bytes < c.audit.shortfall->bytes) return std::nullopt;
  Advice advice;
  advice.change = "capture fewer CUDA graphs (fewer batch sizes), or share one pool between them";
  advice.evidence =
      fmt::format("{} lie in private pools, {} are missing", bytes_text(graphs->second.bytes),
                  bytes_text(c.audit.shortfall->bytes));
  advice.saving = graphs->second.bytes;
  advice.at_most = true;
  advice.basis = Basis::measured;
  advice.cost = "launch overhead for the sizes that are no longer captured";
  return advice;
}

constexpr std::array kRules = {
    AdviceRule{"expandable-segments", expandable_segments},
    AdviceRule{"max-split-size", max_split_size},
    AdviceRule{"largest-first", allocate_largest_first},
    AdviceRule{"memory-fraction", raise_fraction},
    AdviceRule{"fewer-graphs", fewer_graphs},
};

}  // namespace

std::span<const AdviceRule> allocator_rules() {
  return kRules;
}

}  // namespace vramtrack
