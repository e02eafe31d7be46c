// JAX and TensorFlow: XLA's plans, and the best-fit allocator (BFC) that both use.
#include <array>

#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

// A BFC dump lists every chunk before its totals.
constexpr size_t kDumpLength = 2 * 1024 * 1024;
constexpr size_t kSurroundings = 64 * 1024;
constexpr size_t kPlanLength = 64 * 1024;

constexpr std::array kPlanClauses = {
    Clause{"whiletryingtoallocate", "", SizeKind::ask},
    Clause{"outofmemoryallocating", "", SizeKind::ask},
    Clause{"failedtoallocaterequestfor", "", SizeKind::ask},
    Clause{"preallocatedtempallocation:", "", SizeKind::temporary},
    Clause{"totalallocation:", "", SizeKind::planned},
    Clause{"totalfragmentation:", "", SizeKind::plan_fragmentation},
};

void read_bytes(std::string_view window, std::string_view before, SizeKind which,
                OomMessage& message) {
  if (const auto size = bytes_after(window, before)) keep_size(which, *size, message);
}

// "Stats: Limit: 4928097484 InUse: 4248542720 MaxInUse: ..." in bytes, after the dump.
void read_bfc_stats(const Candidate& candidate, OomMessage& message) {
  const std::string_view window = candidate.window().substr(0, kDumpLength);
  const size_t stats = window.find("limit:");
  if (stats == std::string_view::npos) return;
  const std::string_view totals = window.substr(stats, 2000);
  if (totals.substr(0, 200).find("inuse:") == std::string_view::npos) return;
  read_bytes(totals, "limit:", SizeKind::limit, message);
  read_bytes(totals, "inuse:", SizeKind::allocated, message);
  read_bytes(totals, "maxinuse:", SizeKind::peak, message);
  read_bytes(totals, "largestfreeblock:", SizeKind::largest_free, message);
  if (const auto held = bytes_after(window, "total_region_allocated_bytes_:")) {
    keep_size(SizeKind::reserved, *held, message);
  }
}

std::string device_ordinal(std::string_view window) {
  const std::string_view ordinal = number_after(window, "deviceordinal");
  return ordinal.empty() ? std::string{} : "GPU " + std::string(ordinal);
}

std::optional<OomMessage> read_xla(const Candidate& candidate) {
  // CuPy says "out of memory allocating", too, and goes on with what it allocated so far.
  const std::string_view head = candidate.window().substr(0, 160);
  if (head.find("(allocatedsofar") != std::string_view::npos ||
      candidate.before(64).find("cupy") != std::string_view::npos) {
    return std::nullopt;
  }
  OomMessage message = message_at(candidate, "JAX/XLA", "request of the client's allocator");
  message.device = device_ordinal(candidate.window().substr(0, 200));
  Candidate plan = candidate;
  plan.limit = std::min(candidate.limit, candidate.at + kPlanLength);
  read_clauses(plan, kPlanClauses, 1500, message);
  if (const auto exact = size_after(head, "(")) keep_size(SizeKind::ask, *exact, message);
  if (message.sizes.contains(SizeKind::planned))
    message.form = "with the plan of a compiled program";
  if (!message.sizes.contains(SizeKind::ask)) return std::nullopt;
  read_bfc_stats(candidate, message);
  return message;
}

// "20.10G" in "Used 20.10G of": one letter, which the next word was glued to.
std::optional<PrintedSize> short_size_after(std::string_view window, std::string_view before) {
  const std::string digits(number_after(window, before));
  if (digits.empty()) return std::nullopt;
  const size_t unit = window.find(before) + before.size() + digits.size();
  if (unit >= window.size()) return std::nullopt;
  const auto token = read_size(digits + window[unit], 0);
  if (!token || !token->has_unit) return std::nullopt;
  return token->size;
}

// "Ran out of memory in memory space hbm. Used 20.10G of 15.48G hbm. Exceeded hbm capacity by ..."
std::optional<OomMessage> read_tpu(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "JAX/XLA", "compile time");
  const std::string_view window = candidate.window().substr(0, 1000);
  if (const auto used = short_size_after(window, "used")) {
    message.sizes.emplace(SizeKind::planned, *used);
  }
  const size_t used = std::min(window.find("used"), window.size());
  if (const auto total = short_size_after(window.substr(used), "of")) {
    message.sizes.emplace(SizeKind::total, *total);
  }
  message.device = "TPU";
  message.end = candidate.at + 40;
  return message;
}

// "OOM when allocating tensor with shape[256,112,112,64] and type float on ..."
std::optional<OomMessage> read_tensor(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "TensorFlow", "tensor that found no room");
  const std::string_view window = candidate.window().substr(0, 600);
  const size_t open = window.find('[');
  const size_t close = window.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open) {
    long double elements = 1;
    for (size_t at = open + 1; at < close;) {
      const size_t comma = std::min(window.find(',', at), close);
      long double dimension = 0;
      for (size_t digit = at; digit < comma; ++digit) {
        if (window[digit] >= '0' && window[digit] <= '9') {
          dimension = dimension * 10 + (window[digit] - '0');
        }
      }
      elements *= dimension;
      at = comma + 1;
    }
    struct Type {
      std::string_view name;
      int bytes;
    };
    constexpr std::array kTypes = {Type{"float", 4},     Type{"half", 2},  Type{"bfloat16", 2},
                                   Type{"double", 8},    Type{"int32", 4}, Type{"int64", 8},
                                   Type{"complex64", 8}, Type{"int8", 1},  Type{"uint8", 1},
                                   Type{"bool", 1}};
    for (const Type& type : kTypes) {
      if (!window.substr(close).starts_with("]andtype" + std::string(type.name) + "on")) continue;
      message.sizes.emplace(SizeKind::ask, PrintedSize::exact(elements * type.bytes));
    }
    message.details["shape"] = std::string(window.substr(open, close - open + 1));
    message.end = candidate.at + close;
  }
  if (window.find("device:cpu") != std::string_view::npos) message.kind = MessageKind::host;
  const std::string_view ordinal = number_after(window, "device:gpu:");
  if (!ordinal.empty()) message.device = "GPU " + std::string(ordinal);
  read_bfc_stats(candidate, message);
  return message;
}

// "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB (rounded to 2415919104)..."
std::optional<OomMessage> read_bfc(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  const size_t origin = candidate.at > kSurroundings ? candidate.at - kSurroundings : 0;
  const std::string_view around = candidate.text.substr(origin, 2 * kSurroundings);
  const bool jax = around.find("jaxlib") != std::string_view::npos ||
                   around.find("xlaruntimeerror") != std::string_view::npos;
  OomMessage message =
      message_at(candidate, jax ? "JAX/XLA" : "TensorFlow", "best-fit allocator (BFC)");
  if (const auto ask = size_after(window, "ranoutofmemorytryingtoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  if (const auto rounded = bytes_after(window, "(roundedto"))
    message.sizes[SizeKind::ask] = *rounded;
  message.end = candidate.at + 40;
  read_bfc_stats(candidate, message);
  return message;
}

// "failed to allocate 3.93G (4221042688 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY": the pool
// could not be made as large as it was told to be.
std::optional<OomMessage> read_preallocation(const Candidate& candidate) {
  const std::string_view before = candidate.before(80);
  const size_t failed = before.rfind("failedtoallocate");
  if (failed == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "JAX/TensorFlow", "growth of the pool");
  if (const auto bytes = size_after(before.substr(failed), "(")) {
    message.sizes.emplace(SizeKind::ask, *bytes);
  }
  message.end = candidate.at + std::string_view("fromdevice:cuda_error_out_of_memory").size();
  return message;
}

// "Attempting to allocate 2.68G. That was not possible. There are 2.41G free."
std::optional<OomMessage> read_attempt(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 200);
  if (window.find("notpossible") == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "JAX/XLA", "request on a TPU");
  if (const auto ask = short_size_after(window, "attemptingtoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  if (const auto free = short_size_after(window, "thereare")) {
    message.sizes.emplace(SizeKind::free, *free);
  }
  message.device = "TPU";
  message.end = candidate.at + 40;
  return message;
}

// "failed to allocate memory [Op:AddV2]"
std::optional<OomMessage> read_failed_op(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "TensorFlow", "operation that found no room");
  message.end = candidate.at + 26;
  return message;
}

constexpr std::array kRecognisers = {
    Recogniser{"attemptingtoallocate", read_attempt},
    Recogniser{"failedtoallocatememory[op:", read_failed_op},
    Recogniser{"outofmemorywhiletryingtoallocate", read_xla},
    Recogniser{"outofmemoryallocating", read_xla},
    Recogniser{"failedtoallocaterequestfor", read_xla},
    Recogniser{"ranoutofmemoryinmemoryspace", read_tpu},
    Recogniser{"oomwhenallocatingtensorwithshape", read_tensor},
    Recogniser{"ranoutofmemorytryingtoallocate", read_bfc},
    Recogniser{"fromdevice:cuda_error_out_of_memory", read_preallocation},
};

}  // namespace

std::span<const Recogniser> compiler_recognisers() {
  return kRecognisers;
}

}  // namespace vramtrack
