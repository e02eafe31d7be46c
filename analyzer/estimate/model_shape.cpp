#include "estimate/model_shape.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

using nlohmann::json;

// Bounds that no model comes near, and that keep every product below 2^63.
constexpr uint64_t kMostLayers = 10000;
constexpr uint64_t kMostWidth = 1 << 20;
constexpr uint64_t kMostVocabulary = 1 << 24;
constexpr uintmax_t kMostConfigBytes = 4 << 20;

uint64_t number(const json& config, std::initializer_list<const char*> keys, uint64_t otherwise) {
  for (const char* key : keys) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) continue;
    if (!found->is_number_unsigned()) {
      throw InputError(fmt::format("config: \"{}\" is no whole number", key));
    }
    return found->get<uint64_t>();
  }
  return otherwise;
}

double real(const json& config, const char* key, double otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number() ? found->get<double>() : otherwise;
}

bool flag(const json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

ModelShape read_gpt2(const json& config) {
  ModelShape shape;
  shape.family = Family::gpt2;
  shape.layers = number(config, {"n_layer", "num_hidden_layers"}, 12);
  shape.hidden = number(config, {"n_embd", "hidden_size"}, 768);
  shape.heads = number(config, {"n_head", "num_attention_heads"}, 12);
  shape.kv_heads = shape.heads;
  shape.intermediate = number(config, {"n_inner"}, 4 * shape.hidden);
  shape.vocab = number(config, {"vocab_size"}, 50257);
  shape.positions = number(config, {"n_positions", "max_position_embeddings"}, 1024);
  shape.tied_embeddings = flag(config, "tie_word_embeddings", true);
  shape.qkv_bias = shape.out_bias = shape.mlp_bias = true;
  const auto act = config.find("activation_function");
  shape.gelu_by_elements =
      act == config.end() || !act->is_string() || act->get<std::string>() == "gelu_new";
  shape.attention_dropout = real(config, "attn_pdrop", 0.1);
  shape.residual_dropout = real(config, "resid_pdrop", 0.1);
  shape.embedding_dropout = real(config, "embd_pdrop", 0.1);
  return shape;
}

ModelShape read_llama(const json& config, const std::string& type) {
  ModelShape shape;
  shape.family = Family::llama;
  shape.layers = number(config, {"num_hidden_layers"}, 0);
  shape.hidden = number(config, {"hidden_size"}, 0);
  shape.heads = number(config, {"num_attention_heads"}, 0);
  shape.kv_heads = number(config, {"num_key_value_heads"}, shape.heads);
  shape.head_dim = number(config, {"head_dim"}, 0);
  shape.intermediate = number(config, {"intermediate_size"}, 0);
  shape.vocab = number(config, {"vocab_size"}, 0);
  shape.experts = number(config, {"num_local_experts"}, 0);
  shape.attention_dropout = real(config, "attention_dropout", 0);
  shape.tied_embeddings = flag(config, "tie_word_embeddings", type == "gemma");
  shape.mlp_bias = flag(config, "mlp_bias", false);
  const bool bias = flag(config, "attention_bias", false);
  shape.qkv_bias = bias || type == "qwen2";
  shape.out_bias = bias;
  shape.head_norms = type == "qwen3";
  // Qwen writes a window down and does not use it unless told so.
  const bool uses_window =
      type.starts_with("qwen") ? flag(config, "use_sliding_window", false) : true;
  if (uses_window) shape.window = number(config, {"sliding_window"}, 0);
  if (shape.head_dim == 0 && (type == "gemma" || type == "qwen3")) {
    shape.head_dim = type == "gemma" ? 256 : 128;  // the defaults of these classes
  }
  return shape;
}

void require(bool holds, std::string_view what) {
  if (!holds) throw InputError(fmt::format("the model's shape makes no sense: {}", what));
}

class Tensors {
 public:
  explicit Tensors(uint64_t layers) : layers_(layers) {}

  void vector(std::string name, uint64_t size, bool per_layer = true) {
    tensors.push_back({std::move(name), 1, size, per_layer ? layers_ : 1, false, false, {}});
  }
  void linear(const std::string& name, const char* role, uint64_t in, uint64_t out, bool bias,
              uint64_t copies = 1) {
    tensors.push_back({name + ".weight", out, in, layers_ * copies, true, false, role});
    if (bias) vector(name + ".bias", out);
  }
  void embedding(std::string name, uint64_t rows, uint64_t columns) {
    tensors.push_back({std::move(name), rows, columns, 1, false, true, {}});
  }
  void head(uint64_t vocab, uint64_t hidden) {
    tensors.push_back({"lm_head.weight", vocab, hidden, 1, true, false, "head"});
  }

  std::vector<ParameterTensor> tensors;

 private:
  uint64_t layers_;
};

void add_gpt2(const ModelShape& s, Tensors& t) {
  t.embedding("wte.weight", s.vocab, s.hidden);
  t.embedding("wpe.weight", s.positions, s.hidden);
  t.vector("h.*.ln_1.weight", s.hidden);
  t.vector("h.*.ln_1.bias", s.hidden);
  t.linear("h.*.attn.c_attn", "qkv", s.hidden, 3 * s.hidden, s.qkv_bias);
  t.linear("h.*.attn.c_proj", "o", s.hidden, s.hidden, s.out_bias);
  t.vector("h.*.ln_2.weight", s.hidden);
  t.vector("h.*.ln_2.bias", s.hidden);
  t.linear("h.*.mlp.c_fc", "fc", s.hidden, s.intermediate, s.mlp_bias);
  t.linear("h.*.mlp.c_proj", "proj", s.intermediate, s.hidden, s.mlp_bias);
  t.vector("ln_f.weight", s.hidden, false);
  t.vector("ln_f.bias", s.hidden, false);
}

void add_llama(const ModelShape& s, Tensors& t) {
  t.embedding("embed_tokens.weight", s.vocab, s.hidden);
  t.linear("layers.*.self_attn.q_proj", "q", s.hidden, s.query_width(), s.qkv_bias);
  t.linear("layers.*.self_attn.k_proj", "k", s.hidden, s.kv_width(), s.qkv_bias);
  t.linear("layers.*.self_attn.v_proj", "v", s.hidden, s.kv_width(), s.qkv_bias);
  t.linear("layers.*.self_attn.o_proj", "o", s.query_width(), s.hidden, s.out_bias);
  if (s.head_norms) {
    t.vector("layers.*.self_attn.q_norm.weight", s.head_dim);
    t.vector("layers.*.self_attn.k_norm.weight", s.head_dim);
  }
  const uint64_t copies = s.experts == 0 ? 1 : s.experts;
  if (s.experts != 0) t.linear("layers.*.mlp.gate", "router", s.hidden, s.experts, false);
  t.linear("layers.*.mlp.gate_proj", "gate", s.hidden, s.intermediate, s.mlp_bias, copies);
  t.linear("layers.*.mlp.up_proj", "up", s.hidden, s.intermediate, s.mlp_bias, copies);
  t.linear("layers.*.mlp.down_proj", "down", s.intermediate, s.hidden, s.mlp_bias, copies);
  t.vector("layers.*.input_layernorm.weight", s.hidden);
  t.vector("layers.*.post_attention_layernorm.weight", s.hidden);
  t.vector("norm.weight", s.hidden, false);
}

}  // namespace

ModelShape read_config(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  if (size > kMostConfigBytes) throw InputError(path.string() + ": too large for a config.json");
  std::ifstream file(path);
  const json config = json::parse(file, nullptr, false);
  if (!config.is_object()) throw InputError(path.string() + ": no JSON object, so no config.json");
  const auto type_entry = config.find("model_type");
  const std::string type =
      type_entry != config.end() && type_entry->is_string() ? type_entry->get<std::string>() : "";
  ModelShape shape;
  if (type == "gpt2") {
    shape = read_gpt2(config);
  } else if (type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3" ||
             type == "gemma" || type == "mixtral") {
    shape = read_llama(config, type);
  } else {
    throw InputError(
        fmt::format("{}: model_type \"{}\" is none of gpt2, llama, mistral, qwen2, qwen3, gemma, "
                    "mixtral; give the "
                    "shape by flags (--layers --hidden --heads ...)",
                    path.string(), type.substr(0, 60)));
  }
  shape.name = type;
  check_shape(shape);
  return shape;
}

void check_shape(ModelShape& s) {
  require(s.layers > 0 && s.layers <= kMostLayers, "layers");
  require(s.hidden > 0 && s.hidden <= kMostWidth, "hidden size");
  require(s.heads > 0 && s.heads <= kMostWidth, "heads");
  require(s.vocab > 0 && s.vocab <= kMostVocabulary, "vocabulary");
  if (s.kv_heads == 0) s.kv_heads = s.heads;
  if (s.head_dim == 0) {
    require(s.hidden % s.heads == 0, "the hidden size is no multiple of the heads");
    s.head_dim = s.hidden / s.heads;
  }
  require(s.kv_heads <= s.heads && s.heads % s.kv_heads == 0,
          "the heads are no multiple of the key/value heads");
  require(s.head_dim <= kMostWidth && s.query_width() <= kMostWidth, "head dimension");
  if (s.intermediate == 0) s.intermediate = 4 * s.hidden;
  require(s.intermediate <= 16 * kMostWidth, "intermediate size");
  require(s.positions <= kMostVocabulary && s.experts <= kMostLayers, "positions or experts");
}

std::vector<ParameterTensor> parameter_tensors(const ModelShape& shape) {
  Tensors t(shape.layers);
  if (shape.family == Family::gpt2) {
    add_gpt2(shape, t);
  } else {
    add_llama(shape, t);
  }
  if (!shape.tied_embeddings) t.head(shape.vocab, shape.hidden);
  return t.tensors;
}

uint64_t parameter_count(const std::vector<ParameterTensor>& tensors) {
  uint64_t count = 0;
  for (const ParameterTensor& tensor : tensors) count += tensor.elements() * tensor.count;
  return count;
}

}  // namespace vramtrack
