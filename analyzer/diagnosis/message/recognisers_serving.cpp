// Serving engines: vLLM, SGLang, llama.cpp. Most of their messages are about a budget, the share of
// the card they were told to use, not about an allocation that failed.
#include <array>

#include "diagnosis/message/recognisers.h"

namespace vramtrack {
namespace {

constexpr std::array kProfileClauses = {
    Clause{"total_gpu_memory(", "", SizeKind::total},
    Clause{")=", "", SizeKind::budget},
    Clause{"modelweightstake", "", SizeKind::weights},
    Clause{"non_torch_memorytakes", "", SizeKind::non_torch},
    Clause{"pytorchactivationpeakmemorytakes", "", SizeKind::activation_peak},
    Clause{"reservedforkvcacheis", "", SizeKind::kv_cache},
    Clause{"availablekvcachememory:", "", SizeKind::kv_cache},
};

constexpr std::array kOneRequestClauses = {
    Clause{"", "kvcacheisneeded", SizeKind::kv_needed},
    Clause{"availablekvcachememory(", "", SizeKind::kv_cache},
};

void read_utilization(std::string_view window, OomMessage& message) {
  for (const std::string_view before :
       {"gpu_memory_utilization(", "gpumemoryutilization(", "gpu_memory_utilization="}) {
    const std::string_view value = number_after(window, before);
    if (!value.empty()) message.details["gpu_memory_utilization"] = value;
  }
}

// The profile of a start: "the current vLLM instance can use total_gpu_memory (8.00GiB) x
// gpu_memory_utilization (0.70) = 5.60GiB model weights take 5.20GiB; ... KV Cache is -1.05GiB."
// It is printed at every start; only without room for the cache does it tell of a failure.
std::optional<OomMessage> read_profile_at(const Candidate& candidate, size_t from) {
  Candidate profile = candidate;
  constexpr size_t kLookBack = 2000;
  const size_t origin = from > kLookBack ? from - kLookBack : 0;
  const std::string_view before = candidate.text.substr(origin, from - origin);
  size_t begin = before.rfind("canusetotal_gpu_memory");
  if (begin == std::string_view::npos) begin = before.rfind("modelweightstake");
  profile.at = begin == std::string_view::npos ? from : origin + begin;
  OomMessage message =
      message_at(profile, "vLLM", "memory profile of the start", MessageKind::budget);
  read_clauses(profile, kProfileClauses, 1500, message);
  message.begin = candidate.at;
  read_utilization(profile.window().substr(0, 1000), message);
  return message;
}

std::optional<OomMessage> read_profile(const Candidate& candidate) {
  auto message = read_profile_at(candidate, candidate.at);
  const auto room = message->size(SizeKind::kv_cache);
  if (!room || room->bytes > 0) return std::nullopt;
  return message;
}

std::optional<OomMessage> read_no_blocks(const Candidate& candidate) {
  OomMessage message =
      message_at(candidate, "vLLM", "no room for the KV cache", MessageKind::budget);
  message.end = candidate.at + std::string_view("noavailablememoryforthecacheblocks").size();
  read_utilization(candidate.before(20000), message);
  return message;
}

std::optional<OomMessage> read_one_request(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "vLLM", "KV cache below one request of full length",
                                  MessageKind::budget);
  read_clauses(candidate, kOneRequestClauses, 400, message);
  const std::string_view window = candidate.window().substr(0, 900);
  const std::string_view asked = number_after(window, "maxseqlen(");
  if (!asked.empty()) message.details["max_model_len"] = asked;
  const std::string_view fits = number_after(window, "estimatedmaximummodellengthis");
  if (!fits.empty()) message.details["longest_that_fits"] = fits;
  return message;
}

std::optional<OomMessage> read_token_count(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "vLLM", "KV cache below one request of full length",
                                  MessageKind::budget);
  const std::string_view before = candidate.before(60);
  const std::string_view asked = number_after(before, "maxseqlen(");
  if (!asked.empty()) message.details["max_model_len"] = asked;
  const std::string_view fits = number_after(candidate.window().substr(0, 160), "kvcache(");
  if (!fits.empty()) message.details["longest_that_fits"] = fits;
  message.end = candidate.at + 60;
  return message;
}

// "Free memory on device cuda:0 (1.71/7.75 GiB) on startup is less than desired GPU memory
// utilization (0.9, 6.98 GiB)."
std::optional<OomMessage> read_startup(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  const size_t open = window.find('(');
  const size_t slash = window.find('/', open == std::string_view::npos ? 0 : open);
  const size_t end = window.find("onstartup");
  if (open == std::string_view::npos || slash == std::string_view::npos ||
      end == std::string_view::npos || slash > end) {
    return std::nullopt;
  }
  const auto total = read_size(window, slash + 1);
  const std::string_view unit = total && total->has_unit ? window.substr(total->end - 3, 3) : "gib";
  const std::string free_text =
      std::string(window.substr(open + 1, slash - open - 1)) + std::string(unit);
  const auto free = free_text.empty() ? std::nullopt : read_size(free_text, 0);
  if (!total || !free) return std::nullopt;
  OomMessage message =
      message_at(candidate, "vLLM", "free memory at the start", MessageKind::budget);
  message.sizes.emplace(SizeKind::total, total->size);
  message.sizes.emplace(SizeKind::free, free->size);
  read_utilization(window, message);
  const size_t comma = window.find(',', end);
  if (comma != std::string_view::npos && comma + 1 < window.size()) {
    if (const auto wanted = next_size(window, comma + 1)) {
      message.sizes.emplace(SizeKind::budget, wanted->size);
    }
  }
  message.end = candidate.at + end;
  return message;
}

std::optional<OomMessage> read_warm_up(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "vLLM", "warm-up of the sampler", MessageKind::budget);
  const std::string_view requests = number_after(candidate.window().substr(0, 160), "samplerwith");
  if (!requests.empty()) message.details["max_num_seqs"] = requests;
  message.end = candidate.at + 48;
  return message;
}

std::optional<OomMessage> read_sglang(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 300);
  if (window.find("mem-fraction-static") == std::string_view::npos) return std::nullopt;
  OomMessage message =
      message_at(candidate, "SGLang", "no room within the static share", MessageKind::budget);
  const std::string_view fraction = number_after(window, "mem_fraction_static=");
  if (!fraction.empty()) message.details["mem_fraction_static"] = fraction;
  message.end = candidate.at + 60;
  return message;
}

// "Not enough memory to handle 4096 prefill tokens. You need to decrease
// `--max-batch-prefill-tokens`"; older: "... 16000 total tokens with 2 prefill tokens ..."
std::optional<OomMessage> read_tgi(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 200);
  const size_t end = window.find("prefilltokens");
  if (end == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "Text Generation Inference",
                                  "warm-up with a batch of full length", MessageKind::budget);
  const std::string_view first = number_after(window, "tohandle");
  const std::string_view prefill = number_after(window, "totaltokenswith");
  message.details["prefill_tokens"] = prefill.empty() ? first : prefill;
  if (!prefill.empty()) message.details["total_tokens"] = first;
  message.end = candidate.at + end;
  return message;
}

// Raised by Transformers where Accelerate's device map left modules for the CPU.
std::optional<OomMessage> read_device_map(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "Transformers", "quantised weights beyond the devices",
                                  MessageKind::budget);
  message.details["device_map"] = "cpu or disk";
  message.end = candidate.at + 43;
  return message;
}

// llama.cpp prints the card's room when it picks a device, and a table at the end.
void read_ggml_surroundings(const Candidate& candidate, const std::string& backend,
                            OomMessage& message) {
  const std::string_view before = candidate.before(256 * 1024);
  const size_t line = before.rfind("usingdevice" + backend);
  if (line == std::string_view::npos) return;
  const std::string_view rest = before.substr(line, 200);
  const size_t free = rest.find("mibfree");
  if (free == std::string_view::npos) return;
  size_t digit = free;
  while (digit > 0 && rest[digit - 1] >= '0' && rest[digit - 1] <= '9') --digit;
  if (digit == free) return;
  if (const auto token = read_size(rest, digit)) {
    message.sizes.emplace(SizeKind::free, token->size);
    message.details["free_measured"] = "before the model was loaded";
  }
}

// "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144817.04 MiB on device 0: cudaMalloc
// failed: out of memory"
std::optional<OomMessage> read_ggml_buffer(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 400);
  const auto ask = size_after(window, "allocating");
  if (!ask || window.find("fail") == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "llama.cpp/ggml", "buffer of a back end");
  message.sizes.emplace(SizeKind::ask, *ask);
  const std::string ordinal(number_after(window, "ondevice"));
  if (!ordinal.empty()) message.device = "GPU " + ordinal;
  message.end = candidate.at + window.find("fail");
  read_ggml_surroundings(candidate, "cuda" + (ordinal.empty() ? "0" : ordinal), message);
  return message;
}

// "alloc_tensor_range: failed to allocate CUDA0 buffer of size 151851674624", also as
// "ggml_gallocr_reserve_n: failed to allocate ...": then it is the compute buffer.
std::optional<OomMessage> read_ggml_sized(const Candidate& candidate) {
  const std::string_view before = candidate.before(64);
  const size_t failed = before.rfind("failedtoallocate");
  if (failed == std::string_view::npos) return std::nullopt;
  const std::string backend(before.substr(failed + std::string_view("failedtoallocate").size()));
  const auto ask = bytes_after(candidate.window().substr(0, 64), "bufferofsize");
  if (!ask || backend.size() > 24) return std::nullopt;
  const bool host = backend.starts_with("cpu") || backend.ends_with("_host");
  OomMessage message = message_at(candidate, "llama.cpp/ggml", "buffer of a back end, by its size",
                                  host ? MessageKind::host : MessageKind::device);
  message.sizes.emplace(SizeKind::ask, *ask);
  message.device = backend;
  if (candidate.before(200).find("gallocr_reserve") != std::string_view::npos) {
    message.details["buffer"] = "compute";
  }
  message.end = candidate.at + 20;
  if (!host) read_ggml_surroundings(candidate, backend, message);
  return message;
}

std::optional<OomMessage> read_ggml_pinned(const Candidate& candidate) {
  const std::string_view before = candidate.before(64);
  const size_t failed = before.rfind("failedtoallocate");
  if (failed == std::string_view::npos) return std::nullopt;
  OomMessage message =
      message_at(candidate, "llama.cpp/ggml", "pinned host memory", MessageKind::host);
  if (const auto ask = size_after(before.substr(failed), "failedtoallocate")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  message.end = candidate.at + 14;
  return message;
}

std::optional<OomMessage> read_ggml_old(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 160);
  if (window.find("outofmemory") == std::string_view::npos ||
      window.find("ggml") == std::string_view::npos) {
    return std::nullopt;
  }
  OomMessage message = message_at(candidate, "llama.cpp/ggml", "CUDA error 2, no numbers");
  message.end = candidate.at + window.find("outofmemory") + 11;
  return message;
}

std::optional<OomMessage> read_ggml_vulkan(const Candidate& candidate) {
  OomMessage message = message_at(candidate, "llama.cpp/ggml", "Vulkan allocation");
  if (const auto ask = bytes_after(candidate.window().substr(0, 80), "allocationofsize")) {
    message.sizes.emplace(SizeKind::ask, *ask);
  }
  message.end = candidate.at + 40;
  return message;
}

std::optional<OomMessage> read_ggml_load(const Candidate& candidate) {
  const std::string_view window = candidate.window().substr(0, 64);
  if (window.find("buffer") == std::string_view::npos) return std::nullopt;
  OomMessage message = message_at(candidate, "llama.cpp/ggml", "model load");
  message.end = candidate.at + 24;
  return message;
}

constexpr std::array kRecognisers = {
    Recogniser{"therestofthememoryreservedforkvcacheis", read_profile},
    Recogniser{"availablekvcachememory:", read_profile},
    Recogniser{"noavailablememoryforthecacheblocks", read_no_blocks},
    Recogniser{"toserveatleastonerequest", read_one_request},
    Recogniser{"islargerthanthemaximumnumberoftokensthatcanbestored", read_token_count},
    Recogniser{"freememoryondevice", read_startup},
    Recogniser{"outofmemoryoccurredwhenwarmingup", read_warm_up},
    Recogniser{"notenoughmemory.pleasetry", read_sglang},
    Recogniser{"notenoughmemorytohandle", read_tgi},
    Recogniser{"somemodulesaredispatchedonthecpuorthedisk", read_device_map},
    Recogniser{"_buffer_type_alloc_buffer:", read_ggml_buffer},
    Recogniser{"bufferofsize", read_ggml_sized},
    Recogniser{"ofpinnedmemory", read_ggml_pinned},
    Recogniser{"cudaerror2at", read_ggml_old},
    Recogniser{"devicememoryallocationofsize", read_ggml_vulkan},
    Recogniser{"unabletoallocatecuda", read_ggml_load},
};

}  // namespace

std::span<const Recogniser> serving_recognisers() {
  return kRecognisers;
}

}  // namespace vramtrack
