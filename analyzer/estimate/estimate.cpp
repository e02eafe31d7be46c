#include "estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/allocator_settings.h"

namespace vramtrack {
namespace {

constexpr char kExact[] = "exact by architecture";
constexpr char kAssumed[] = "assumed";
// cuBLAS keeps 8.125 MiB per handle and stream; the backward has a thread, and a handle, of its
// own.
constexpr Bytes kBlasWorkspace = 8519680;

std::string plain(Bytes value) {
  return fmt::format("{:.0f}", static_cast<double>(value));
}

bool quantised(const Workload& w) {
  return w.weights == WeightType::int8 || w.weights == WeightType::nf4;
}

// Bytes of all weights. Quantised: linear layers but the output layer, the rest in half precision.
Bytes weight_bytes(const ParameterTensor& tensor, const Workload& w) {
  const auto elements = static_cast<Bytes>(tensor.elements()) * static_cast<Bytes>(tensor.count);
  const bool packed = quantised(w) && tensor.linear && tensor.role != "head";
  if (!packed) {
    return elements * static_cast<Bytes>(quantised(w) ? 2 : type_bytes(w.weights));
  }
  if (w.weights == WeightType::int8) {
    // One scale in float32 per row.
    return elements + 4 * static_cast<Bytes>(tensor.rows) * static_cast<Bytes>(tensor.count);
  }
  // Four bits, and a scale in float32 per block of 64.
  return elements / 2 + elements / 64 * 4;
}

struct Trained {
  std::vector<ParameterTensor> tensors;
  Bytes width = 4;  // bytes of an element
};

Trained trained_tensors(const std::vector<ParameterTensor>& all, const Workload& w) {
  Trained trained;
  if (!w.training) return trained;
  if (w.lora_rank == 0) {
    trained.tensors = all;
    trained.width = static_cast<Bytes>(type_bytes(w.weights));
    return trained;
  }
  for (const ParameterTensor& tensor : all) {
    if (!tensor.linear || tensor.role == "head" || !is_target(w, tensor.role)) continue;
    trained.tensors.push_back({tensor.name + " A", w.lora_rank, tensor.columns, tensor.count});
    trained.tensors.push_back({tensor.name + " B", tensor.rows, w.lora_rank, tensor.count});
  }
  return trained;  // peft keeps adapters in float32
}

Bytes state_bytes(const ParameterTensor& tensor, const Workload& w, Bytes width) {
  const auto count = static_cast<Bytes>(tensor.count);
  const auto elements = static_cast<Bytes>(tensor.elements());
  switch (w.optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
      return 0;
    case Optimizer::sgd_momentum:
      return count * elements * width;
    case Optimizer::adamw:
      return count * 2 * elements * width;
    case Optimizer::adamw_mixed:
      return count * elements * 12;
    case Optimizer::adamw_8bit:
      // Below 4096 elements the state stays in float32; else a scale per 256 and moment.
      if (elements < 4096) return count * 8 * elements;
      return count * (2 * elements + 2 * 4 * std::ceil(elements / 256));
    case Optimizer::adafactor:
      if (tensor.rows == 1) return count * 4 * elements;
      return count * 4 * (static_cast<Bytes>(tensor.rows) + static_cast<Bytes>(tensor.columns));
  }
  return 0;
}

const char* state_symbol(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd_momentum:
      return "Pw";
    case Optimizer::adamw:
      return "2Pw";
    case Optimizer::adamw_mixed:
      return "12P";
    case Optimizer::adamw_8bit:
      return "2P(1 + 4/256)";
    case Optimizer::adafactor:
      return "4(rows + columns)";
    default:
      return "0";
  }
}

const char* state_words(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd_momentum:
      return "momentum, in the weights' type";
    case Optimizer::adamw:
      return "two moments, in the weights' type";
    case Optimizer::adamw_mixed:
      return "two moments and master weights in float32";
    case Optimizer::adamw_8bit:
      return "two moments in 8 bit with their scales";
    case Optimizer::adafactor:
      return "row and column factors in float32";
    default:
      return "none";
  }
}

Bytes shard(Bytes bytes, const Workload& w, uint64_t from_stage) {
  return w.zero_stage >= from_stage ? bytes / static_cast<Bytes>(w.ranks) : bytes;
}

// What the caching allocator adds to a tensor of this size: a segment's rest that is too small to
// be split off stays with the block.
Bytes rounding_of(Bytes bytes) {
  const AllocatorSettings settings;
  if (bytes <= 0 || bytes > 1e15L) return 0;
  const auto size = static_cast<uint64_t>(bytes);
  const uint64_t rounded = settings.round_size(size);
  const uint64_t segment = settings.allocation_size(rounded);
  const bool small = AllocatorSettings::small_pool(rounded);
  const uint64_t block = settings.should_split(segment, rounded, small, false) ? rounded : segment;
  return static_cast<Bytes>(block) - bytes;
}

struct Rounding {
  Bytes weights = 0, trained = 0;  // of the weights; of one more tensor for each trained one
};

// Only where the tensors are plain and whole: packed and sharded ones are laid out otherwise.
Rounding state_rounding(const std::vector<ParameterTensor>& all, const Workload& w) {
  Rounding rounding;
  if (quantised(w) || w.zero_stage > 0) return rounding;
  const auto add = [](const std::vector<ParameterTensor>& tensors, Bytes width) {
    Bytes sum = 0;
    for (const ParameterTensor& t : tensors) {
      sum += static_cast<Bytes>(t.count) * rounding_of(static_cast<Bytes>(t.elements()) * width);
    }
    return sum;
  };
  rounding.weights = add(all, static_cast<Bytes>(type_bytes(w.weights)));
  const Trained trained = trained_tensors(all, w);
  rounding.trained = add(trained.tensors, trained.width);
  return rounding;
}

struct States {
  Bytes weights = 0, gradients = 0, optimizer = 0, update_scratch = 0, head_gradient = 0;
};

States add_states(const std::vector<ParameterTensor>& all, const Workload& w, Estimate& e) {
  States s;
  for (const ParameterTensor& tensor : all) s.weights += weight_bytes(tensor, w);
  e.parameters = parameter_count(all);
  const Trained trained = trained_tensors(all, w);
  e.trainable = parameter_count(trained.tensors);
  s.weights = shard(s.weights, w, 3);
  const std::string zero =
      w.zero_stage > 0 ? fmt::format(", ZeRO-{} over {}", w.zero_stage, w.ranks) : "";
  e.terms.push_back({"parameters", "Pw", fmt::format("weights in {}{}", type_name(w.weights), zero),
                     fmt::format("P = {}", e.parameters), s.weights, kExact});
  if (!w.training) return s;
  if (w.lora_rank > 0) {
    const Bytes adapters = 4 * static_cast<Bytes>(e.trainable);
    s.weights += adapters;
    e.terms.push_back({"parameters", "4 r (n_in + n_out)", "adapters in float32",
                       fmt::format("r = {}, {} elements", w.lora_rank, e.trainable), adapters,
                       kExact});
  }
  const Bytes whole = static_cast<Bytes>(e.trainable) * trained.width;
  s.gradients = shard(whole, w, 2);
  e.terms.push_back({"gradients", "Pw", "one for each trained weight" + zero,
                     fmt::format("P = {}", e.trainable), s.gradients, kExact});
  for (const ParameterTensor& tensor : trained.tensors) {
    s.optimizer += state_bytes(tensor, w, trained.width);
    if (tensor.role == "head" || tensor.embedding) {
      s.head_gradient =
          std::max(s.head_gradient, static_cast<Bytes>(tensor.elements()) * trained.width);
    }
  }
  s.optimizer = shard(s.optimizer, w, 1);
  e.terms.push_back(
      {"optimizer_state", state_symbol(w.optimizer),
       fmt::format("{}: {}{}", optimizer_name(w.optimizer), state_words(w.optimizer), zero),
       fmt::format("P = {}", e.trainable), s.optimizer, kExact});
  const bool adam = w.optimizer == Optimizer::adamw;
  if (adam && !w.fused_optimizer) s.update_scratch = shard(whole, w, 1);
  return s;
}

void add_phase(Estimate& e, const char* name, Bytes bytes, const char* of) {
  e.phases.push_back({name, bytes, of});
}

void estimate_training(const ModelShape& m, const Workload& w, const States& s, Estimate& e) {
  const Activations a = training_activations(m, w);
  e.terms.insert(e.terms.end(), a.layers.begin(), a.layers.end());
  e.terms.insert(e.terms.end(), a.ends.begin(), a.ends.end());
  e.terms.insert(e.terms.end(), a.loss.begin(), a.loss.end());
  Bytes cast_weights = 0;
  if (w.autocast) {
    for (const ParameterTensor& tensor : parameter_tensors(m)) {
      if (!tensor.linear) continue;
      cast_weights += 2 * static_cast<Bytes>(tensor.elements()) * static_cast<Bytes>(tensor.count);
    }
    // A tied output layer casts the embedding.
    if (m.tied_embeddings) {
      cast_weights += 2 * static_cast<Bytes>(m.vocab) * static_cast<Bytes>(m.hidden);
    }
    e.terms.push_back({"activations", "2P_linear", "weights that autocast keeps in half precision",
                       "", cast_weights, "torch.autocast's cache, kept for the backward"});
  }
  const Bytes workspace = 2 * kBlasWorkspace;
  e.terms.push_back({"workspace", "2 x 8.125 MiB",
                     "cuBLAS, for the forward's and the backward's thread", "", workspace,
                     kAssumed});

  const Rounding rounding = state_rounding(parameter_tensors(m), w);
  const Bytes copies = w.optimizer == Optimizer::adamw          ? 2
                       : w.optimizer == Optimizer::sgd_momentum ? 1
                                                                : 0;
  const Bytes lasting = rounding.weights + copies * rounding.trained;
  e.terms.push_back({"rounding", "block - request",
                     "what the allocator adds to weights and optimizer state", "", lasting,
                     "PyTorch's rules for blocks and segments"});
  const Bytes standing = s.weights + s.optimizer + workspace + lasting;
  const Bytes gradients = s.gradients + rounding.trained;
  const Bytes held = w.accumulation > 1 ? gradients : 0;
  const Bytes layers = sum_of(a.layers);
  const Bytes ends = sum_of(a.ends);
  const Bytes again = w.recompute == Recompute::full ? a.one_layer : 0;
  add_phase(e, "loss", standing + held + layers + ends + sum_of(a.loss) + cast_weights,
            "weights, state, all saved activations, the loss's logits");
  add_phase(e, "first layer of the backward",
            standing + std::max(held, s.head_gradient) + layers + again + a.scratch +
                a.kept_logits + cast_weights,
            "weights, state, saved activations, one layer's gradients in the making");
  add_phase(e, "last layer of the backward",
            standing + gradients + a.one_layer + a.scratch + a.kept_logits,
            "weights, state, gradients, one layer's activations");
  add_phase(e, "optimizer step",
            standing + gradients + s.update_scratch +
                (s.update_scratch > 0 ? rounding.trained : 0) + a.kept_logits,
            "weights, state, gradients, the update's scratch");
}

void estimate_inference(const ModelShape& m, const Workload& w, const States& s, Estimate& e) {
  const Bytes bits = static_cast<Bytes>(w.kv_bits.value_or(8 * compute_bytes(w)));
  const uint64_t kept = m.window != 0 ? std::min(m.window, w.seq) : w.seq;
  const Bytes cache = 2 * static_cast<Bytes>(m.layers) * static_cast<Bytes>(w.batch * w.requests) *
                      static_cast<Bytes>(kept) * static_cast<Bytes>(m.kv_width()) * bits / 8;
  e.terms.push_back({"kv_cache", "2 L n s g d w", "keys and values of all tokens that are kept",
                     fmt::format("L = {}, n = {}, s = {}, g = {}, d = {}, w = {} bit", m.layers,
                                 w.batch * w.requests, kept, m.kv_heads, m.head_dim, plain(bits)),
                     cache, "exact by architecture"});
  const auto active = inference_activations(m, w);
  e.terms.insert(e.terms.end(), active.begin(), active.end());
  e.terms.push_back({"workspace", "8.125 MiB", "cuBLAS", "", kBlasWorkspace, kAssumed});
  add_phase(e, "prefill", s.weights + cache + sum_of(active) + kBlasWorkspace,
            "weights, cache, one layer's activations");
  add_phase(e, "decoding", s.weights + cache + kBlasWorkspace, "weights, cache");
}

// Which of the terms are live in the highest phase. Where layers are in the middle of their
// backward the split is not known term by term: what the states leave of the peak are activations.
void find_categories_at_peak(const Workload& w, Estimate& e) {
  e.at_peak = e.categories;
  if (!w.training) return;
  if (e.peak.name == "loss") {
    if (w.accumulation == 1) e.at_peak["gradients"] = 0;
    return;
  }
  e.at_peak.clear();
  Bytes rest = e.peak.bytes;
  for (const char* name : {"parameters", "optimizer_state", "workspace", "rounding", "gradients"}) {
    if (e.peak.name == "first layer of the backward" && std::string(name) == "gradients") continue;
    e.at_peak[name] = e.categories[name];
    rest -= e.categories[name];
  }
  e.at_peak[e.peak.name == "optimizer step" ? "other" : "activations"] = rest;
}

}  // namespace

Estimate estimate_memory(const ModelShape& shape, const Workload& work) {
  Estimate e;
  const auto all = parameter_tensors(shape);
  const States states = add_states(all, work, e);
  if (work.training) {
    estimate_training(shape, work, states, e);
  } else {
    estimate_inference(shape, work, states, e);
  }
  e.peak =
      *std::max_element(e.phases.begin(), e.phases.end(),
                        [](const PhasePeak& a, const PhasePeak& b) { return a.bytes < b.bytes; });
  e.context = static_cast<Bytes>(work.context_bytes);
  for (const MemoryTerm& term : e.terms) e.categories[term.category] += term.bytes;
  find_categories_at_peak(work, e);
  return e;
}

}  // namespace vramtrack
