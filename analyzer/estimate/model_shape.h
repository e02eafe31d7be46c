// The shape of a language model, as far as memory depends on it: from a Hugging Face config.json or
// from flags.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_MODEL_SHAPE_H
#define VRAMTRACK_ANALYZER_ESTIMATE_MODEL_SHAPE_H

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

// Two families cover most decoders: GPT-2 (LayerNorm, fused qkv, learned positions, a two-matrix
// MLP) and Llama (RMSNorm, rotary positions, grouped heads, a gated MLP).
enum class Family : uint8_t { gpt2, llama };

struct ModelShape {
  std::string name = "llama";  // model_type of the config
  Family family = Family::llama;
  uint64_t layers = 0;
  uint64_t hidden = 0;
  uint64_t heads = 0;
  uint64_t kv_heads = 0;
  uint64_t head_dim = 0;
  uint64_t intermediate = 0;
  uint64_t vocab = 0;
  uint64_t positions = 0;  // learned positions (GPT-2)
  uint64_t window = 0;     // sliding attention window, 0 none
  uint64_t experts = 0;    // of a mixture, 0: dense
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool head_norms = false;       // norms of q and k per head (Qwen 3)
  bool gelu_by_elements = true;  // GPT-2's "gelu_new": eight small operations instead of one
  double attention_dropout = 0;
  double residual_dropout = 0;
  double embedding_dropout = 0;

  [[nodiscard]] uint64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] uint64_t kv_width() const { return kv_heads * head_dim; }
};

// A weight, and how often it occurs.
struct ParameterTensor {
  std::string name;   // "layers.*.self_attn.q_proj.weight"
  uint64_t rows = 1;  // 1: a vector
  uint64_t columns = 1;
  uint64_t count = 1;
  bool linear = false;  // the matrix of a linear layer: LoRA, quantisation and autocast act on it
  bool embedding = false;
  std::string role;  // "q", "k", "v", "o", "gate", "up", "down", "qkv", "fc", "proj", "head"

  [[nodiscard]] uint64_t elements() const { return rows * columns; }
};

// Throws InputError where the file is no config or the architecture is not one of those known.
ModelShape read_config(const std::filesystem::path& path);
// Throws InputError where numbers are missing, or beyond what any model has.
void check_shape(ModelShape& shape);

std::vector<ParameterTensor> parameter_tensors(const ModelShape& shape);
uint64_t parameter_count(const std::vector<ParameterTensor>& tensors);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_MODEL_SHAPE_H
