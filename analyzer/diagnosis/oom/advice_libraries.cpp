// Switches of one library.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "diagnosis/oom/advice_rules.h"

namespace vramtrack {
namespace {

std::optional<PrintedSize> size_of(const AdviceContext& c, SizeKind which) {
  const auto found = c.sizes.find(which);
  if (found == c.sizes.end()) return std::nullopt;
  return found->second;
}

std::string detail(const AdviceContext& c, const std::string& key) {
  const auto found = c.details.find(key);
  return found == c.details.end() ? std::string{} : found->second;
}

Advice piece(std::string change, std::string evidence, std::string cost) {
  Advice advice;
  advice.change = std::move(change);
  advice.evidence = std::move(evidence);
  advice.cost = std::move(cost);
  return advice;
}

bool serving(const AdviceContext& c) {
  return c.kind == MessageKind::budget;
}

std::optional<Advice> raise_utilization(const AdviceContext& c) {
  if (c.library != "vLLM" || !serving(c) || c.audit.verdict != OomVerdict::capacity)
    return std::nullopt;
  const auto total = size_of(c, SizeKind::total);
  const auto weights = size_of(c, SizeKind::weights);
  if (!total || !weights) {
    return piece("raise gpu_memory_utilization if the card has room beside the engine",
                 "the engine's share has no room for the KV cache",
                 "less room for whatever else runs on the card");
  }
  PrintedSize used = *weights;
  for (const SizeKind part : {SizeKind::non_torch, SizeKind::activation_peak}) {
    if (const auto size = size_of(c, part)) used = used + *size;
  }
  const double needed = std::ceil(static_cast<double>(used.bytes / total->bytes) * 100) / 100;
  if (needed >= 1) return std::nullopt;  // the card itself is too small
  Advice advice = piece(fmt::format("raise gpu_memory_utilization above {:.2f}", needed),
                        fmt::format("weights, activation peak and the rest take {} of {}",
                                    bytes_text(used.bytes), bytes_text(total->bytes)),
                        "less room for whatever else runs on the card");
  if (const auto budget = size_of(c, SizeKind::budget)) {
    advice.saving = total->bytes - budget->bytes;
    advice.at_most = true;
    advice.basis = Basis::computed;
  }
  return advice;
}

std::optional<Advice> shorter_context(const AdviceContext& c) {
  if (!serving(c) || detail(c, "longest_that_fits").empty()) return std::nullopt;
  Advice advice = piece("set max_model_len to " + detail(c, "longest_that_fits") + " or less",
                        "the KV cache holds that many tokens", "longer requests are refused");
  const auto needed = size_of(c, SizeKind::kv_needed);
  const auto room = size_of(c, SizeKind::kv_cache);
  if (needed && room) {
    advice.saving = needed->bytes - room->bytes;
    advice.basis = Basis::computed;
  }
  return advice;
}

std::optional<Advice> eight_bit_cache(const AdviceContext& c) {
  const auto needed = size_of(c, SizeKind::kv_needed);
  if (!serving(c) || !needed) return std::nullopt;
  Advice advice =
      piece("keep the KV cache in 8 bit (--kv-cache-dtype fp8)",
            fmt::format("one request of full length takes {}", bytes_text(needed->bytes)),
            "a little accuracy");
  advice.saving = needed->bytes / 2;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> smaller_peak(const AdviceContext& c) {
  const auto peak = size_of(c, SizeKind::activation_peak);
  if (c.library != "vLLM" || !peak) return std::nullopt;
  Advice advice =
      piece("halve max_num_batched_tokens",
            fmt::format("the activation peak of the profile run is {}", bytes_text(peak->bytes)),
            "slower prefill");
  advice.saving = peak->bytes / 2;
  advice.basis = Basis::computed;
  return advice;
}

std::optional<Advice> lower_utilization(const AdviceContext& c) {
  if (c.library != "vLLM" || !serving(c)) return std::nullopt;
  const auto total = size_of(c, SizeKind::total);
  const auto free = size_of(c, SizeKind::free);
  if (total && free) {
    const double fits = std::floor(static_cast<double>(free->bytes / total->bytes) * 100) / 100;
    return piece(
        fmt::format("free the card first, or set gpu_memory_utilization to {:.2f} or less", fits),
        fmt::format("{} of {} were free", bytes_text(free->bytes), bytes_text(total->bytes)),
        "a smaller KV cache");
  }
  if (!detail(c, "max_num_seqs").empty()) {
    return piece("lower max_num_seqs below " + detail(c, "max_num_seqs") +
                     ", or gpu_memory_utilization by a few hundredths",
                 "warm-up needed more than the profile had left", "fewer requests at once");
  }
  return std::nullopt;
}

std::optional<Advice> sglang_fraction(const AdviceContext& c) {
  if (c.library != "SGLang") return std::nullopt;
  const std::string now = detail(c, "mem_fraction_static");
  return piece("raise --mem-fraction-static" + (now.empty() ? "" : " above " + now) +
                   "; if the card is full without it, quantise the weights or use more cards",
               "weights leave no room for the KV cache within the static share",
               "less room for activations: too high, and the OOM comes later");
}

std::optional<Advice> prefill_tokens(const AdviceContext& c) {
  const std::string tokens = detail(c, "prefill_tokens");
  if (tokens.empty()) return std::nullopt;
  return piece("lower --max-batch-prefill-tokens below " + tokens +
                   (detail(c, "total_tokens").empty()
                        ? ""
                        : ", or --max-batch-total-tokens below " + detail(c, "total_tokens")) +
                   "; quantise the weights or use more shards where long prompts are needed",
               "the engine tries a batch of that length when it starts",
               "longer prompts are refused, or wait");
}

std::optional<Advice> placed_on_the_cpu(const AdviceContext& c) {
  if (detail(c, "device_map").empty()) return std::nullopt;
  return piece(
      "free the card first, quantise to 4 bit, or use more devices; with "
      "llm_int8_enable_fp32_cpu_offload=True and a device_map of your own the rest stays on the "
      "CPU",
      "modules were placed on the CPU because the devices were full",
      "modules on the CPU are slow and stay unquantised");
}

std::optional<Advice> compute_buffer(const AdviceContext& c) {
  if (c.library != "llama.cpp/ggml" || c.kind != MessageKind::device) return std::nullopt;
  if (detail(c, "buffer") == "compute") {
    return piece(
        "lower the micro-batch (-ub), switch flash attention on (-fa), fewer parallel copies",
        "the buffer that failed is for computing, not for weights or the KV cache",
        "slower prompts");
  }
  return piece(
      "put fewer layers on this device (-ngl, --tensor-split), a smaller context (-c), or a "
      "smaller quantisation",
      "one buffer holds all layers that go to the device",
      "layers on the CPU are slow; smaller quantisation loses accuracy");
}

std::optional<Advice> jax_pool(const AdviceContext& c) {
  if (c.library != "JAX/XLA" && c.library != "JAX/TensorFlow") return std::nullopt;
  return piece(
      "let the pool grow instead of taking its share at the start "
      "(XLA_PYTHON_CLIENT_PREALLOCATE=false, or XLA_PYTHON_CLIENT_MEM_FRACTION)",
      "every JAX process takes 75 % of the card unless told otherwise",
      "a pool that grows fragments");
}

std::optional<Advice> tensorflow_growth(const AdviceContext& c) {
  if (c.library != "TensorFlow" && c.library != "JAX/TensorFlow") return std::nullopt;
  return piece("tf.config.experimental.set_memory_growth(device, True)",
               "TensorFlow takes the whole card at the start unless told otherwise",
               "a pool that grows fragments");
}

std::optional<Advice> leave_room(const AdviceContext& c) {
  const bool handle = c.library.starts_with("cu") || c.library.starts_with("roc") ||
                      c.library.starts_with("hip") || c.library == "MIOpen";
  if (!handle && c.library != "NCCL") return std::nullopt;
  return piece(
      "leave this library room: lower the framework's share of the card or the batch, or create "
      "the handle (communicator) before the pool has grown",
      c.library + " allocates from the driver, and the pool had taken what there was",
      c.library == "NCCL" ? "NCCL_BUFFSIZE and fewer channels also help, at some bandwidth"
                          : "a few hundred MiB for the pool");
}

// Who set a limit on host memory, and how to raise it. Empty where nobody did.
std::string larger_share(std::string_view library) {
  if (library == "Slurm") return "ask for more with --mem or --mem-per-cpu";
  if (library == "Docker/Kubernetes") {
    return "raise the container's memory limit (resources.limits.memory, docker run --memory)";
  }
  if (library == "Ray") {
    return "fewer tasks at once on a node (num_cpus per task), or a higher "
           "RAY_memory_usage_threshold";
  }
  return {};
}

std::optional<Advice> host_memory(const AdviceContext& c) {
  if (c.audit.verdict != OomVerdict::host_memory) return std::nullopt;
  if (c.library == "Windows") {
    return piece("raise the size of the paging file", "Windows could not commit more memory",
                 "disk space");
  }
  if (c.form.find("shared memory") != std::string::npos) {
    return piece("enlarge /dev/shm (docker run --shm-size) or use fewer workers",
                 "data loader workers hand batches over in shared memory", "host memory");
  }
  if (!detail(c, "unified").empty()) {
    return piece("free host memory: caches, a desktop, swap on zram",
                 "CPU and GPU share the memory", "none");
  }
  const std::string larger = larger_share(c.library);
  if (!larger.empty()) {
    return piece(larger + "; fewer data loader workers, a smaller prefetch_factor, less offloading",
                 "the limit on host memory was reached, not the machine's end",
                 "less for other jobs");
  }
  if (c.library == "Ollama") {
    return piece("a smaller model or quantisation, or close other programs; more swap also counts",
                 "the model is loaded only where free memory and swap hold it",
                 "quality, or speed");
  }
  return piece(
      "fewer data loader workers, a smaller prefetch_factor, pin_memory=False, less offloading",
      "host memory ran out; pinned buffers are rounded up to a power of two and never given back",
      "slower input");
}

std::optional<Advice> smaller_kernel(const AdviceContext& c) {
  if (c.library != "Triton") return std::nullopt;
  return piece("smaller block sizes or fewer num_stages in this kernel",
               "it wants more of an on-chip resource than the hardware has",
               "possibly a slower kernel");
}

std::optional<Advice> corrupt_size(const AdviceContext& c) {
  if (c.kind != MessageKind::corrupt && c.audit.verdict != OomVerdict::healthy) return std::nullopt;
  if (c.library == "Triton") return std::nullopt;
  return piece(
      "find where the size comes from: a length read from data, a collective that timed out "
      "before",
      "no program means to ask for that much", "none");
}

std::optional<Advice> tensorrt_profile(const AdviceContext& c) {
  if (c.library != "TensorRT") return std::nullopt;
  return piece(
      "build the engine with smaller profile maxima or workspace, or run it on a larger device or "
      "slice",
      "the block's size is fixed when the engine is built", "a new build; smaller inputs");
}

std::optional<Advice> mps_watermark(const AdviceContext& c) {
  if (c.library != "PyTorch (MPS)") return std::nullopt;
  return piece("raise PYTORCH_MPS_HIGH_WATERMARK_RATIO (0.0 lifts the limit)",
               "the limit is a share of the memory that CPU and GPU have in common",
               "above it the system swaps, and may fail as a whole");
}

std::optional<Advice> rmm_pool(const AdviceContext& c) {
  if (c.library != "RMM" || detail(c, "pool").empty()) return std::nullopt;
  return piece("raise the pool's maximum size, or let it spill (managed memory)",
               "the pool has reached the size it was given", "spilling is slow");
}

constexpr std::array kRules = {
    AdviceRule{"gpu-memory-utilization", raise_utilization},
    AdviceRule{"shorter-context", shorter_context},
    AdviceRule{"kv-cache-8bit", eight_bit_cache},
    AdviceRule{"batched-tokens", smaller_peak},
    AdviceRule{"lower-utilization", lower_utilization},
    AdviceRule{"mem-fraction-static", sglang_fraction},
    AdviceRule{"prefill-tokens", prefill_tokens},
    AdviceRule{"device-map", placed_on_the_cpu},
    AdviceRule{"ggml-buffer", compute_buffer},
    AdviceRule{"jax-preallocation", jax_pool},
    AdviceRule{"tensorflow-growth", tensorflow_growth},
    AdviceRule{"leave-room", leave_room},
    AdviceRule{"host-memory", host_memory},
    AdviceRule{"triton-blocks", smaller_kernel},
    AdviceRule{"corrupt-size", corrupt_size},
    AdviceRule{"tensorrt-profile", tensorrt_profile},
    AdviceRule{"mps-watermark", mps_watermark},
    AdviceRule{"rmm-pool", rmm_pool},
};

}  // namespace

std::span<const AdviceRule> library_rules() {
  return kRules;
}

}  // namespace vramtrack
