// What a call stack says about the memory that was allocated under it: which phase of a job it is,
// which operator, which part of a model. The patterns stand in one table in stack_traits.cpp.
//
// Traits are facts about frames ("an optimizer's code is on the stack"), not verdicts: the rules
// weigh them together with size and lifetime.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_STACK_TRAITS_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_STACK_TRAITS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

enum class Trait : uint8_t {
  backward,         // inside the autograd engine
  accumulate_grad,  // where a leaf's .grad is written
  recomputation,    // a forward that activation checkpointing runs again
  checkpointed,     // inside a checkpointed region, first time or again
  optimizer,        // an optimizer's step
  optimizer_state_creation,
  gradient_scaling,  // GradScaler, clipping
  module_creation,   // parameters are made: __init__, reset_parameters, from_pretrained
  module_move,       // Module.to and its kin
  module_forward,    // a module's forward
  generation,        // token by token
  data_loading,
  attention_code,         // Python code of an attention module or function
  dot_product_attention,  // scaled_dot_product_attention, whatever computes it
  selection,              // where: how a Boolean mask becomes numbers
  fused_attention,        // scaled_dot_product_attention and flash kernels
  softmax,
  log_softmax,
  loss,
  mask,
  rotary,
  cache_update,      // code of a KV cache
  key_value_copies,  // where keys and values of a group are repeated for its queries
  concatenation,
  projection,  // a linear layer's product
  embedding,
  batched_product,  // bmm, baddbmm: scores, or weights times values
  dropout,
  autocast,
  tensor_creation,  // the allocation is a tensor's, not a raw one
  blas_workspace,
  dropout_states,  // random states of cuDNN's dropout
  cudnn,
  nccl,
  gradient_buckets,  // DDP's reducer
  sharding,          // FSDP
  graph_capture,
  compiled,  // code that torch.compile made
  kCount,
};
static_assert(static_cast<int>(Trait::kCount) <= 64);

// The phase of a job that a stack alone proves.
enum class Activity : uint8_t {
  unknown,
  initialisation,
  data_loading,
  forward,
  backward,
  recomputation,
  optimizer,
  communication,
};
std::string_view name_of(Activity activity);

struct StackTraits {
  uint64_t bits = 0;
  // Innermost ATen operator, "_softmax", not counting those that only make room; empty where none
  // is seen.
  std::string op;
  std::string outer_op;       // outermost one of the same run of operators
  std::string backward_node;  // "SoftmaxBackward0"
  std::string
      module;  // classes of the forwards on the stack, outermost first: "GPT/Block/Attention"
  std::string function;     // innermost Python function
  std::string constructor;  // outermost of the constructors that called each other: "GPT.__init__"
  bool empty = true;        // no frames at all
  bool native = false;      // any frame that is not Python's

  [[nodiscard]] bool has(Trait trait) const { return (bits >> static_cast<int>(trait) & 1) != 0; }
  [[nodiscard]] Activity activity() const;
};

// A module's forward, the first time or again for the backward pass.
inline bool is_forward(const StackTraits& traits) {
  return traits.activity() == Activity::forward || traits.activity() == Activity::recomputation;
}

// Looks at each frame and each stack once.
class StackTraitsCache {
 public:
  explicit StackTraitsCache(const Definitions& definitions) : definitions_(&definitions) {}

  const StackTraits& of(StackId stack) const;
  [[nodiscard]] const Definitions& definitions() const { return *definitions_; }

 private:
  uint64_t bits_of(FrameId frame) const;

  const Definitions* definitions_;
  mutable std::unordered_map<StackId, StackTraits> stacks_;
  // The same by id, for ids that are small numbers, as all readers give them.
  mutable std::vector<const StackTraits*> by_id_;
  mutable std::unordered_map<FrameId, uint64_t> frames_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_STACK_TRAITS_H
