// Keys and values: in a cache between tokens, and in training for the backward pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attribution/module_path.h"
#include "attribution/torch_rules.h"

namespace vramtrack {
namespace {

// What PyTorch's allocator takes for a single number.
constexpr uint64_t kSmallestBlock = 512;

// What linear layers that make keys or values are called, in any case.
constexpr std::array<std::string_view, 22> kKeyValueLayers = {
    "k",      "v",       "kv",        "key",        "value", "keys",     "values", "k_proj",
    "v_proj", "kv_proj", "key_proj",  "value_proj", "wk",    "wv",       "wkv",    "to_k",
    "to_v",   "to_kv",   "kv_b_proj", "k_lin",      "v_lin", "linear_kv"};
// One layer that makes queries, keys and values.
constexpr std::array<std::string_view, 9> kFusedLayers = {"qkv",     "qkv_proj", "query_key_value",
                                                          "c_attn",  "wqkv",     "to_qkv",
                                                          "in_proj", "attn_qkv", "linear_qkv"};

enum class Layer : uint8_t { other, keys_values, fused };

// By any part of its qualified name: LoRA and quantisation wrap a layer into modules of their own,
// "k_proj.base_layer".
Layer layer_named(std::string_view module) {
  while (!module.empty()) {
    std::string part(module.substr(module.rfind('.') + 1));
    std::transform(part.begin(), part.end(), part.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::find(kKeyValueLayers.begin(), kKeyValueLayers.end(), part) != kKeyValueLayers.end())
      return Layer::keys_values;
    if (std::find(kFusedLayers.begin(), kFusedLayers.end(), part) != kFusedLayers.end())
      return Layer::fused;
    if (part == "lora_a") return Layer::other;  // as narrow as LoRA's rank
    const size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  }
  return Layer::other;
}

// The product itself, not the casts and copies around it.
bool is_product(const StackTraits& traits) {
  if (!traits.has(Trait::projection) || traits.has(Trait::batched_product)) return false;
  if (traits.op.empty()) return true;  // no native frames: nothing else is known
  for (const std::string_view name : {"addmm", "mm", "linear", "matmul", "_addmm"})
    if (traits.op.starts_with(name)) return true;
  return false;
}

// Where Q, K and V have the same size, K and V are two thirds; where queries share them, Q is most.
bool is_mostly_keys_values(uint64_t size, const Evidence& evidence) {
  return size % 3 == 0 && evidence.is_product_size(size / 3);
}

}  // namespace

std::optional<Verdict> key_value_cache(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!traits.has(Trait::cache_update)) return std::nullopt;
  if (block.size <= kSmallestBlock) return std::nullopt;  // a counter, not keys of a layer
  if (scene.evidence().trains() && is_forward(traits) && !traits.has(Trait::generation))
    return Verdict{Category::activations, "kv", "keys or values of a forward pass in training",
                   0.85};
  return Verdict{Category::kv_cache, "", "made where a KV cache stores keys and values", 0.95};
}

std::optional<Verdict> keys_and_values(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!is_forward(traits)) return std::nullopt;
  const auto keys_values = [](std::string reason, double confidence) {
    return Verdict{Category::activations, "kv", std::move(reason), confidence};
  };
  if (traits.has(Trait::key_value_copies))
    return keys_values("keys or values, repeated for the queries that share them", 0.9);
  const AttentionRole role = scene.evidence().attention_role(block.stack);
  if (role == AttentionRole::rotated_keys && !traits.has(Trait::projection))
    return keys_values("keys with rotary positions: the second of the two that are rotated", 0.8);
  if (role == AttentionRole::copied_keys_values)
    return keys_values("keys or values, copied for the products of an attention", 0.75);
  if (!is_product(traits)) return std::nullopt;
  const std::string_view name = scene.definitions().string(block.module);
  const Layer layer = layer_named(name);
  if (layer == Layer::keys_values)
    return keys_values(fmt::format("made by {}, a layer for keys or values", name), 0.9);
  const bool fused = layer == Layer::fused || role == AttentionRole::fused;
  if (fused && is_mostly_keys_values(comparable_size(block), scene.evidence()))
    return keys_values("queries, keys and values in one product: two thirds are keys and values",
                       layer == Layer::fused ? 0.9 : 0.8);
  if (name.empty() && role == AttentionRole::keys_values)
    return keys_values("made by the second or third linear layer before an attention", 0.75);
  return std::nullopt;
}

}  // namespace vramtrack
