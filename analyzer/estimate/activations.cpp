#include "estimate/activations.h"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

constexpr char kSaved[] = "what PyTorch saves for backward, from the model's operations";

struct Dimensions {
  Bytes b, s, T, h, q, kv, a, f, V, c, r;

  Dimensions(const ModelShape& m, const Workload& w)
      : b(static_cast<Bytes>(w.batch)),
        s(static_cast<Bytes>(w.seq)),
        T(b * s),
        h(static_cast<Bytes>(m.hidden)),
        q(static_cast<Bytes>(m.query_width())),
        kv(static_cast<Bytes>(m.kv_width())),
        a(static_cast<Bytes>(m.heads)),
        f(static_cast<Bytes>(m.intermediate)),
        V(static_cast<Bytes>(m.vocab)),
        c(static_cast<Bytes>(compute_bytes(w))),
        r(static_cast<Bytes>(stream_bytes(w))) {}
  [[nodiscard]] Bytes scores() const { return b * a * s * s; }
};

// Collects the terms of one layer; each is multiplied by the number of layers at the end.
class Layer {
 public:
  Layer(uint64_t layers, std::vector<MemoryTerm>& terms) : layers_(layers), terms_(terms) {}

  void add(const char* category, const char* symbol, const char* what, Bytes bytes) {
    if (bytes <= 0) return;
    one += bytes;
    terms_.push_back(
        {category, fmt::format("L {}", symbol), what,
         fmt::format("L = {}, {:.0f} bytes per layer", layers_, static_cast<double>(bytes)),
         bytes * static_cast<Bytes>(layers_), kSaved});
  }

  Bytes one = 0;

 private:
  uint64_t layers_;
  std::vector<MemoryTerm>& terms_;
};

bool lora(const Workload& w) {
  return w.lora_rank > 0;
}

// Adapters of half-precision and quantised models are kept in float32 (peft's default), and each
// casts its input for itself.
void add_adapters(const ModelShape& m, const Workload& w, const Dimensions& x, Layer& layer) {
  if (!lora(w)) return;
  const Bytes width = 4;
  const bool casts = x.r < 4;
  Bytes inputs = 0;
  Bytes inner = 0;
  bool shared_attention_input = false;
  bool shared_mlp_input = false;
  for (const ParameterTensor& tensor : parameter_tensors(m)) {
    if (!tensor.linear || tensor.role == "head" || !is_target(w, tensor.role)) continue;
    inner += width * x.T * static_cast<Bytes>(w.lora_rank);
    const Bytes input = width * x.T * static_cast<Bytes>(tensor.columns);
    const bool of_attention = tensor.role == "q" || tensor.role == "k" || tensor.role == "v";
    const bool of_mlp = tensor.role == "gate" || tensor.role == "up";
    // Without a cast the adapters of one input save the same tensor; what SDPA saved is shared,
    // too.
    if (!casts && ((of_attention && shared_attention_input) || (of_mlp && shared_mlp_input)))
      continue;
    if (!casts && tensor.role == "o") continue;
    shared_attention_input = shared_attention_input || of_attention;
    shared_mlp_input = shared_mlp_input || of_mlp;
    inputs += input;
  }
  layer.add("activations", "4T n_in per adapter", "inputs of the adapters", inputs);
  layer.add("activations", "4Tr per adapter", "what lies between A and B of the adapters", inner);
}

void add_rms_norm(const Workload& w, const Dimensions& x, const char* what, Bytes casts,
                  Layer& layer) {
  layer.add("activations", "4Th", what, 4 * x.T * x.h);
  if (!lora(w)) {
    // The product with a trained scale keeps what it scales; a frozen one does not.
    layer.add("activations", "rTh", "normalised, before its scale", x.r * x.T * x.h);
    const Bytes out = w.autocast ? casts * x.c * x.T * x.h : x.r * x.T * x.h;
    layer.add(
        "activations", w.autocast ? "cTh per linear layer" : "rTh",
        w.autocast ? "casts for the linear layers that read it" : "input of the linear layers",
        out);
  }
  layer.add("activations", "4T", "inverse root mean squares", 4 * x.T);
}

void add_eager_llama(const ModelShape& m, const Workload& w, const Dimensions& x, Layer& layer) {
  // Repeating the single head of a single sequence is a view, not a copy.
  const bool repeats = m.kv_heads < m.heads && (m.kv_heads > 1 || w.batch > 1);
  layer.add("activations", "cTad", "queries", x.c * x.T * x.q);
  if (repeats) {
    layer.add("activations/kv", "2cTad", "keys and values, repeated for all heads",
              2 * x.c * x.T * x.q);
  } else {
    layer.add("activations/kv", "2cTgd", "keys and values", 2 * x.c * x.T * x.kv);
  }
  if (repeats && w.cache_in_training) {
    layer.add("activations/kv", "(r+c)Tgd", "keys and values in the cache that the output carries",
              (x.r + x.c) * x.T * x.kv);
  } else if (w.autocast && w.cache_in_training) {
    layer.add("activations/kv", "rTgd", "keys in the cache, in float32", x.r * x.T * x.kv);
  }
  if (w.recompute == Recompute::selective) return;
  layer.add("attention", "4bas^2", "softmax in float32", 4 * x.scores());
  if (x.c < 4) layer.add("attention", "cbas^2", "softmax, cast back", x.c * x.scores());
  if (m.attention_dropout > 0) {
    layer.add("attention", "(c+1)bas^2", "dropout and its mask", (x.c + 1) * x.scores());
  }
}

void add_llama_attention(const ModelShape& m, const Workload& w, const Dimensions& x,
                         Layer& layer) {
  if (w.attention == AttentionKind::fused) {
    layer.add("activations", "cTad", "queries", x.c * x.T * x.q);
    layer.add("activations/kv", "2cTgd", "keys and values", 2 * x.c * x.T * x.kv);
    if (w.autocast && w.cache_in_training) {
      layer.add("activations/kv", "rTgd", "keys in the cache, in float32", x.r * x.T * x.kv);
    }
    layer.add("attention", "4bas", "log-sum-exp", 4 * x.b * x.a * x.s);
  } else {
    add_eager_llama(m, w, x, layer);
  }
  // Saved by fused attention itself, and by the projection that reads it where that is trained.
  if (w.attention == AttentionKind::fused || !lora(w)) {
    layer.add("activations", "cTad", "output of attention", x.c * x.T * x.q);
  }
}

void add_llama_layer(const ModelShape& m, const Workload& w, const Dimensions& x, Layer& layer) {
  add_rms_norm(w, x, "input of the attention's norm in float32", 3, layer);
  add_llama_attention(m, w, x, layer);
  add_rms_norm(w, x, "input of the MLP's norm in float32", 2, layer);
  layer.add("activations", "3cTf", "gate, its SiLU, and up", 3 * x.c * x.T * x.f);
  if (!lora(w)) layer.add("activations", "cTf", "input of down", x.c * x.T * x.f);
  add_adapters(m, w, x, layer);
}

void add_layer_norm(const Workload& w, const Dimensions& x, const char* what, Layer& layer) {
  layer.add("activations", "rTh", what, x.r * x.T * x.h);
  if (!lora(w)) {
    layer.add("activations", "cTh", "input of the linear layer", x.c * x.T * x.h);
  }
  layer.add("activations", "8T", "means and inverse deviations", 8 * x.T);
}

void add_gpt2_attention(const ModelShape& m, const Workload& w, const Dimensions& x, Layer& layer) {
  const bool fused = w.attention == AttentionKind::fused;
  // Queries are a view of the joint projection: while they are kept, so is all of it. Eager
  // attention copies them where batch and heads cannot be merged into one dimension.
  const bool keeps_projection = fused || w.batch == 1;
  layer.add("activations", keeps_projection ? "3cTh" : "cTh",
            keeps_projection ? "queries, keys and values, one tensor" : "queries, copied",
            (keeps_projection ? 3 : 1) * x.c * x.T * x.h);
  if (!keeps_projection || w.cache_in_training) {
    layer.add("activations/kv", "2cTh",
              w.cache_in_training ? "keys and values in the cache" : "keys and values, copied",
              2 * x.c * x.T * x.h);
  }
  if (fused) {
    layer.add("attention", "4bas", "log-sum-exp", 4 * x.b * x.a * x.s);
  } else if (w.recompute != Recompute::selective) {
    const Bytes softmax = w.autocast ? 4 : x.c;
    layer.add("attention", "cbas^2", "softmax", softmax * x.scores());
    if (m.attention_dropout > 0) {
      layer.add("attention", "(c+1)bas^2", "dropout and its mask", (x.c + 1) * x.scores());
    } else if (w.autocast) {
      layer.add("attention", "cbas^2", "softmax, cast back", x.c * x.scores());
    }
  }
  if (fused || !lora(w)) layer.add("activations", "cTh", "output of attention", x.c * x.T * x.h);
}

void add_gpt2_layer(const ModelShape& m, const Workload& w, const Dimensions& x, Layer& layer) {
  add_layer_norm(w, x, "input of the attention's norm", layer);
  add_gpt2_attention(m, w, x, layer);
  if (m.residual_dropout > 0) layer.add("activations", "2Th", "dropout masks", 2 * x.T * x.h);
  add_layer_norm(w, x, "input of the MLP's norm", layer);
  const Bytes input_of_proj = lora(w) ? 0 : x.c * x.T * x.f;
  if (!m.gelu_by_elements) {
    layer.add("activations", "cTf", "input of GELU", x.c * x.T * x.f);
  } else if (w.autocast) {
    // The power and what follows run in float32, half of the input stays as it was.
    layer.add("activations", "(4+4+4+c)Tf",
              "GELU by elements: input, tanh, 1 + tanh, half the input", (12 + x.c) * x.T * x.f);
  } else {
    layer.add("activations", "4cTf", "GELU by elements: input, tanh, 1 + tanh, half the input",
              4 * x.c * x.T * x.f);
  }
  layer.add("activations", "cTf", "input of the second matrix", input_of_proj);
  add_adapters(m, w, x, layer);
}

void add_ends(const ModelShape& m, const Workload& w, const Dimensions& x,
              std::vector<MemoryTerm>& ends) {
  const auto add = [&](const char* symbol, const char* what, Bytes bytes) {
    if (bytes > 0) ends.push_back({"activations", symbol, what, "", bytes, kSaved});
  };
  // A frozen embedding does not keep its ids, the loss keeps the labels.
  add(lora(w) ? "8T" : "16T", "token ids and labels", (lora(w) ? 8 : 16) * x.T);
  if (w.recompute == Recompute::full && w.attention == AttentionKind::eager) {
    add("cbs^2", "attention mask, which the layers need again", x.c * x.b * x.s * x.s);
  }
  if (m.family == Family::gpt2) {
    add("8s", "positions", 8 * x.s);
    if (m.embedding_dropout > 0) add("Th", "dropout mask of the embedding", x.T * x.h);
    add("rTh", "input of the last norm", x.r * x.T * x.h);
    add("8T", "its means and inverse deviations", 8 * x.T);
  } else {
    add("4Th", "input of the last norm in float32", 4 * x.T * x.h);
    if (!lora(w)) add("rTh", "normalised, before its scale", x.r * x.T * x.h);
    add("4T", "its inverse root mean squares", 4 * x.T);
    add("2rsd", "cosines and sines of the positions",
        2 * x.r * x.s * static_cast<Bytes>(m.head_dim));
  }
  if (!lora(w)) add("cTh", "input of the output layer", x.c * x.T * x.h);
}

// Before the first adapter nothing needs a gradient: the first layer keeps less than the others.
void add_frozen_beginning(const ModelShape& m, const Workload& w, const Dimensions& x,
                          Activations& result) {
  if (!lora(w) || w.recompute == Recompute::full || m.family != Family::llama) return;
  Bytes less = 4 * x.T * x.h + 4 * x.T;
  if (w.attention == AttentionKind::eager && !is_target(w, "k")) less += x.c * x.T * x.q;
  result.ends.push_back(
      {"activations", "-(4Th + 4T)",
       "not kept by the first layer: nothing before the first adapter needs a gradient", "", -less,
       kSaved});
}

// log_softmax keeps its result; its backward needs the incoming gradient and makes another.
void add_loss(const Workload& w, const Dimensions& x, Activations& result) {
  const Bytes chunks = w.chunked_loss ? 16 : 1;
  const auto add = [&](const char* symbol, const char* what, Bytes bytes) {
    result.loss.push_back({"activations/logits", symbol, what, w.chunked_loss ? "in 16 chunks" : "",
                           bytes / chunks, kSaved});
  };
  // log_softmax saves its result, not the logits: without the output they are gone by then.
  if (w.keep_output) {
    add("cTV", "logits, kept by the model's output", x.c * x.T * x.V);
    if (!w.chunked_loss) result.kept_logits = x.c * x.T * x.V;
  }
  add("4TV", "log-softmax in float32", 4 * x.T * x.V);
  add("8TV", "gradients of log-softmax, in and out", 8 * x.T * x.V);
}

}  // namespace

bool is_target(const Workload& work, const std::string& role) {
  if (work.lora_targets == "all") return true;
  const std::string list = "," + work.lora_targets + ",";
  return list.find("," + role + ",") != std::string::npos;
}

Activations training_activations(const ModelShape& m, const Workload& w) {
  const Dimensions x(m, w);
  Activations result;
  Layer layer(m.layers, result.layers);
  if (m.family == Family::gpt2) {
    add_gpt2_layer(m, w, x, layer);
  } else {
    add_llama_layer(m, w, x, layer);
  }
  result.one_layer = layer.one;
  // The largest moment of a layer's backward: the MLP's gradients, or those of the scores.
  result.scratch = 3 * x.c * x.T * x.f + 2 * x.r * x.T * x.h;
  if (w.attention == AttentionKind::eager) {
    result.scratch = std::max(result.scratch, (x.c + 8) * x.scores());
  }
  if (w.recompute == Recompute::full) {
    result.layers = {{"activations", "L rTh", "inputs of the layers; the rest is computed again",
                      fmt::format("L = {}", m.layers),
                      static_cast<Bytes>(m.layers) * x.r * x.T * x.h, kSaved}};
  }
  add_ends(m, w, x, result.ends);
  add_frozen_beginning(m, w, x, result);
  add_loss(w, x, result);
  return result;
}

std::vector<MemoryTerm> inference_activations(const ModelShape& m, const Workload& w) {
  Dimensions x(m, w);
  x.b = x.b * static_cast<Bytes>(w.requests);
  x.T = x.b * x.s;
  std::vector<MemoryTerm> terms;
  terms.push_back({"activations", "cT(2h + 3f)", "widest moment of a layer during the prefill", "",
                   x.c * x.T * (2 * x.h + 3 * x.f), "from the model's operations, upper bound"});
  if (w.attention == AttentionKind::eager) {
    terms.push_back({"attention", "(c+4)bas^2", "scores and softmax of one layer", "",
                     (x.c + 4) * x.scores(), "from the model's operations"});
  }
  terms.push_back({"activations/logits", "(c+4)bV", "logits of the last position", "",
                   (x.c + 4) * x.b * x.V, "from the model's operations"});
  return terms;
}

}  // namespace vramtrack
