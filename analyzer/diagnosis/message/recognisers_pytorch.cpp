// PyTorch, from 0.1 to now: CUDA, ROCm, XPU, NPU, MPS and the cudaMallocAsync back end.
//
// Where the danger is: "cached" of 1.0 to 1.3 is memory held and NOT used; "reserved" of 1.4 to 2.0
// includes what is allocated; from 2.1 on only "reserved but unallocated" is printed.
#include <array>
#include <charconv>

#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxGap = 700;

constexpr std::array kAllocatorClauses = {
    Clause{"triedtoallocate", "", SizeKind::ask},
    Clause{"(total", "", SizeKind::total},
    Clause{"", "totalcapacity", SizeKind::total},
    Clause{"totalcapacityof", "", SizeKind::total},
    Clause{"totalcapactyof", "", SizeKind::total},  // as 2.1 spells it
    Clause{"", "alreadyallocated", SizeKind::allocated},
    Clause{"", "currentactive", SizeKind::active},
    Clause{"ofwhich", "isfree", SizeKind::free},
    Clause{"", "free;", SizeKind::free},
    Clause{"", "free)", SizeKind::free},
    Clause{"", "free,", SizeKind::free},
    Clause{"", "cached;", SizeKind::unallocated},
    Clause{"", "cached)", SizeKind::unallocated},
    Clause{"", "allowed;", SizeKind::limit},
    Clause{"", "allowed)", SizeKind::limit},
    Clause{"", "allowed.", SizeKind::limit},
    Clause{"", "reservedintotal", SizeKind::reserved},
    Clause{"thisprocesshas", "memoryinuse", SizeKind::process},
    Clause{"", "isallocatedbypytorch", SizeKind::allocated},
    Clause{"with", "allocatedinprivatepools", SizeKind::private_pools},
    Clause{"", "isreservedbypytorchbutunallocated", SizeKind::unallocated},
};

constexpr std::array kAsyncClauses = {
    Clause{"currentlyallocated:", "", SizeKind::allocated},
    Clause{"requested:", "", SizeKind::ask},
    Clause{"devicelimit:", "", SizeKind::total},
    Clause{"free(accordingtocuda):", "", SizeKind::free},
    Clause{"pytorchlimit(setbyuser-suppliedmemoryfraction):", "", SizeKind::limit},
};

constexpr std::array kMpsClauses = {
    Clause{"mpsallocated:", "", SizeKind::allocated},
    Clause{"otherallocations:", "", SizeKind::other_in_use},
    Clause{"maxallowed:", "", SizeKind::limit},
    Clause{"triedtoallocate", "", SizeKind::ask},
};

// "process562167has15.25gibmemoryinuse", any number of times.
void read_processes(const Candidate& candidate, OomMessage& message) {
  constexpr std::string_view kProcess = "process";
  constexpr size_t kMaxProcesses = 4096;
  const std::string_view window = candidate.window();
  size_t last = message.end - candidate.at;
  for (size_t at = window.find(kProcess); at != std::string_view::npos && at < last + kMaxGap;
       at = window.find(kProcess, at + 1)) {
    uint64_t pid = 0;
    const char* const digits = window.data() + at + kProcess.size();
    const auto [rest, error] = std::from_chars(digits, window.data() + window.size(), pid);
    if (error != std::errc{} || rest == digits) continue;
    const auto offset = static_cast<size_t>(rest - window.data());
    if (!window.substr(offset).starts_with("has")) continue;
    const size_t number = offset + 3;
    if (number >= window.size() || window[number] < '0' || window[number] > '9') continue;
    const auto token = read_size(window, number);
    if (!token || !window.substr(token->end).starts_with("memoryinuse")) continue;
    if (message.processes.size() < kMaxProcesses) message.processes.push_back({pid, token->size});
    last = token->end + std::string_view("memoryinuse").size();
    message.end = std::max(message.end, candidate.at + last);
  }
}

std::string device_in(std::string_view window) {
  constexpr std::array kKinds = {std::string_view("gpu"), std::string_view("npu"),
                                 std::string_view("xpu"), std::string_view("device")};
  constexpr std::array kNames = {"GPU ", "NPU ", "XPU ", "device "};
  for (size_t kind = 0; kind < kKinds.size(); ++kind) {
    for (size_t at = window.find(kKinds[kind]); at != std::string_view::npos;
         at = window.find(kKinds[kind], at + 1)) {
      const std::string_view rest = window.substr(at + kKinds[kind].size());
      const size_t digits = rest.find_first_not_of("0123456789");
      if (digits == 0 || rest.empty() || digits > 4) continue;
      return kNames[kind] + std::string(rest.substr(0, digits));
    }
  }
  return {};
}

std::string_view wording(const OomMessage& message, std::string_view window) {
  const auto has = [&](std::string_view needle) {
    return window.find(needle) != std::string_view::npos;
  };
  if (has("cached)") || has("cached;")) return "wording of 1.0 to 1.3";
  if (has("pytorch_alloc_conf")) return "wording of 2.9 or later";
  if (message.sizes.contains(SizeKind::private_pools)) return "wording of 2.4 or later";
  if (has("totalcapacty")) return "wording of 2.1";
  if (has("totalcapacityof")) return "wording of 2.2 or later";
  if (has("reservedintotal") && has("max_split_size_mb")) return "wording of 1.10 to 2.0";
  if (has("reservedintotal")) return "wording of 1.4 to 1.9";
  return "short wording";
}

std::string_view runtime(const Candidate& candidate) {
  const std::string_view before = candidate.before(8);
  for (const auto& [word, name] :
       {std::pair<std::string_view, std::string_view>{"hip", "PyTorch (ROCm)"},
        {"xpu", "PyTorch (XPU)"},
        {"npu", "PyTorch (NPU)"},
        {"mps", "PyTorch (MPS)"}}) {
    if (before.ends_with(word)) return name;
  }
  return "PyTorch";
}

std::optional<OomMessage> read_allocator(const Candidate& whole) {
  constexpr std::string_view kAnchor = "outofmemory";
  Candidate candidate = whole;
  const size_t next = whole.text.find("outofmemory.triedtoallocate", whole.at + 1);
  candidate.limit = std::min(whole.limit, next);
  const std::string_view rest = candidate.window().substr(kAnchor.size());
  const std::string_view before = candidate.before(8);
  const bool named = before.ends_with("cuda") || before.ends_with("hip") ||
                     before.ends_with("xpu") || before.ends_with("npu");
  const bool asked = rest.starts_with(".triedtoallocate");
  // "CUDA out of memory" alone also stands in prose; a message goes on with numbers.
  if (!asked && !(named && (rest.starts_with('.') || rest.starts_with('(')))) return std::nullopt;

  OomMessage message = message_at(candidate, runtime(candidate), "");
  message.end = candidate.at + kAnchor.size();
  if (rest.substr(0, 60).find("morethan1eb") != std::string_view::npos) {
    message.kind = MessageKind::corrupt;
    message.form = "size beyond 1 EB";
    message.end = candidate.at + candidate.window().find("morethan1eb");
    return message;
  }
  read_clauses(candidate, kAllocatorClauses, kMaxGap, message);
  read_processes(candidate, message);
  const std::string_view own = candidate.text.substr(
      candidate.at, std::min(message.end + 400, candidate.limit) - candidate.at);
  message.device = device_in(own.substr(0, 120));
  message.form = wording(message, own);
  return message;
}

std::optional<OomMessage> read_async(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "PyTorch", "cudaMallocAsync back end");
  message.device = device_in(candidate.before(32));
  // The limit's number stands on a line of its own below its name.
  read_clauses(candidate, kAsyncClauses, kMaxGap, message);
  const auto limit = message.size(SizeKind::limit);
  if (limit && limit->underflowed()) {
    message.sizes.erase(SizeKind::limit);  // how it prints "no limit"
    message.details["limit"] = "none";
  }
  return message;
}

std::optional<OomMessage> read_mps(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "PyTorch (MPS)", "unified memory");
  message.device = "MPS";
  message.end = candidate.at + std::string_view("mpsbackendoutofmemory").size();
  read_clauses(candidate, kMpsClauses, kMaxGap, message);
  return message;
}

std::optional<OomMessage> read_nvml_assert(const Candidate& candidate) {
  if (!candidate.window().substr(0, 64).starts_with("nvml_success==rinternalassertfailed")) {
    return std::nullopt;
  }
  return message_at(candidate, "PyTorch", "NVML assertion in the allocator's OOM path",
                    MessageKind::masked);
}

std::optional<OomMessage> read_oldest(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "PyTorch", "wording of 0.1 to 0.4, no numbers");
  message.end = candidate.at + std::string_view("cudaruntimeerror(2):outofmemory").size();
  return message;
}

// Not from the caching allocator: a context, a stream, pinned memory, another library.
template <const char* form>
std::optional<OomMessage> read_plain(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "CUDA", form);
  if (candidate.window().substr(0, 400).find("ggml") != std::string_view::npos) {
    message.library = "llama.cpp/ggml";
  }
  message.end = candidate.at + 24;
  const std::string_view around = candidate.before(6000);
  for (const std::string_view sign :
       {"pin_memory", "pinmemory", "cudahostalloc", "cudahostregister", "cudamallochost"}) {
    if (around.find(sign) != std::string_view::npos ||
        candidate.window().substr(0, 400).find(sign) != std::string_view::npos) {
      message.kind = MessageKind::host;
      message.details["failing_call"] = "pinned host memory";
    }
  }
  return message;
}
constexpr char kCudaError[] = "CUDA error, outside the caching allocator";
constexpr char kDriverError[] = "CUDA driver error, outside the caching allocator";
constexpr char kHipError[] = "HIP error, outside the caching allocator";

// "torch.OutOfMemoryError: Allocation on device", all that is left of it where ComfyUI reports it.
std::optional<OomMessage> read_bare_allocation(const Candidate& candidate) {
  if (!candidate.before(20).ends_with("outofmemoryerror:")) return std::nullopt;
  if (candidate.window().substr(0, 80).find("wouldexceed") != std::string_view::npos) {
    return std::nullopt;
  }
  OomMessage message = message_at(candidate, "PyTorch", "cudaMallocAsync back end, no numbers");
  message.end = candidate.at + 18;
  return message;
}

// "Invalid buffer size: 12.00 GB": above what Metal allows a single buffer.
std::optional<OomMessage> read_mps_buffer(const Candidate& candidate) {
  const auto ask = size_after(candidate.window().substr(0, 64), "invalidbuffersize:");
  if (!ask) return std::nullopt;
  OomMessage message = message_at(candidate, "PyTorch (MPS)", "buffer beyond Metal's limit");
  message.device = "MPS";
  message.sizes.emplace(SizeKind::ask, *ask);
  message.details["limit"] = "size of one buffer";
  message.end = candidate.at + 18;
  return message;
}

constexpr std::array kRecognisers = {
    Recogniser{"allocationondevice", read_bare_allocation},
    Recogniser{"invalidbuffersize:", read_mps_buffer},
    Recogniser{"mpsbackendoutofmemory", read_mps},
    Recogniser{"outofmemory", read_allocator},
    Recogniser{"wouldexceedallowedmemory", read_async},
    Recogniser{"nvml_success==r", read_nvml_assert},
    Recogniser{"cudaruntimeerror(2):outofmemory", read_oldest},
    Recogniser{"cudaerror:outofmemory", read_plain<kCudaError>},
    Recogniser{"cudadrivererror:outofmemory", read_plain<kDriverError>},
    Recogniser{"hiperror:outofmemory", read_plain<kHipError>},
    Recogniser{"cudaerrormemoryallocation", read_plain<kCudaError>},
    Recogniser{"cuda_error_out_of_memory", read_plain<kDriverError>},
    Recogniser{"hiperroroutofmemory", read_plain<kHipError>},
};

}  // namespace

std::span<const Recogniser> pytorch_recognisers() {
  return kRecognisers;
}

}  // namespace vramtrack
