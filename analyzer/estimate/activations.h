// What autograd keeps between the forward and the backward pass, tensor by tensor, as PyTorch's
// formulas for the backward define it and as Hugging Face's modelling code calls them. A tensor
// that two operations save counts once.
//
// Symbols: b batch, s length, T = b*s, h hidden, a heads, g key/value heads, d head dimension,
// f width of the MLP, V vocabulary, L layers; c bytes of a computed element, r bytes of an element
// of the stream between layers (r = 4, c = 2 under autocast).
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_ACTIVATIONS_H
#define VRAMTRACK_ANALYZER_ESTIMATE_ACTIVATIONS_H

#include <vector>

#include "estimate/memory_term.h"
#include "estimate/model_shape.h"
#include "estimate/workload.h"

namespace vramtrack {

struct Activations {
  std::vector<MemoryTerm> layers;  // of all layers, saved until the backward reaches them
  std::vector<MemoryTerm> ends;    // embedding, final norm
  std::vector<MemoryTerm> loss;    // live while the loss is differentiated: logits and their kin
  Bytes one_layer = 0;             // saved by a single layer, without recomputation
  Bytes scratch = 0;               // most that one layer's backward needs beside it
  Bytes kept_logits = 0;           // of the loss's terms, what lives through the whole backward
};

Activations training_activations(const ModelShape& shape, const Workload& work);

// What a prefill needs beside weights and cache.
std::vector<MemoryTerm> inference_activations(const ModelShape& shape, const Workload& work);

// Whether LoRA adapts linear layers of this role.
bool is_target(const Workload& work, const std::string& role);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_ACTIVATIONS_H
