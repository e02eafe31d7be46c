// What is done with a model: lengths, precisions, optimizer, and the switches that save memory.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_WORKLOAD_H
#define VRAMTRACK_ANALYZER_ESTIMATE_WORKLOAD_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

enum class WeightType : uint8_t { float32, bfloat16, float16, int8, nf4 };
enum class Optimizer : uint8_t {
  none,
  sgd,
  sgd_momentum,
  adamw,
  adamw_mixed,
  adamw_8bit,
  adafactor
};
enum class Recompute : uint8_t { none, selective, full };
enum class AttentionKind : uint8_t { eager, fused };

struct Workload {
  bool training = true;
  uint64_t batch = 1;
  uint64_t seq = 2048;
  uint64_t requests = 1;      // served at once; inference
  uint64_t accumulation = 1;  // micro-batches per optimizer step
  WeightType weights = WeightType::bfloat16;
  bool autocast = false;  // float32 weights, computing in half precision
  Optimizer optimizer = Optimizer::adamw;
  bool fused_optimizer = false;  // else PyTorch's foreach form, which needs a copy of the weights
  Recompute recompute = Recompute::none;
  AttentionKind attention = AttentionKind::fused;
  bool keep_output = true;        // the model's output, logits included, lives through the backward
  bool chunked_loss = false;      // the loss never has all logits at once
  bool cache_in_training = true;  // use_cache, which Hugging Face leaves on
  uint64_t lora_rank = 0;
  std::string lora_targets = "q,v";  // roles, or "all"
  uint64_t zero_stage = 0;
  uint64_t ranks = 1;
  std::optional<uint64_t> kv_bits;  // of the KV cache; default: that of the computation
  uint64_t context_bytes = 512ULL << 20;
};

// Bytes of one element in memory for plain types.
uint64_t type_bytes(WeightType type);
std::string_view type_name(WeightType type);
std::optional<WeightType> type_named(std::string_view name);
std::string_view optimizer_name(Optimizer optimizer);
std::optional<Optimizer> optimizer_named(std::string_view name);
std::string_view recompute_name(Recompute recompute);

// Bytes of an element that is computed with, and of the stream between layers.
uint64_t compute_bytes(const Workload& work);
uint64_t stream_bytes(const Workload& work);

void check_workload(const Workload& work);  // throws InputError

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_WORKLOAD_H
