// What training leaves in memory: parameters, gradients, optimizer state, and what the optimizer
// and the backward pass hold for a moment.
#include "attribution/torch_rules.h"

namespace vramtrack {
namespace {

// A block that was made during one activity and is gone before the next begins. One that is never
// freed is not passing, even where the recording ends in the same activity.
bool is_passing(const Block& block, const Scene& scene) {
  const uint64_t end = scene.evidence().end_of(block.sequence).sequence;
  return end != kNever && end <= scene.evidence().end_of_activity(block.sequence);
}

// What the backward pass itself gives up is freed inside the autograd engine, which has a thread of
// its own. A gradient is freed by whoever calls zero_grad: optimizers that allocate nothing in
// their steps leave no other trace between two passes.
bool outlives_backward(const Block& block, const Scene& scene) {
  const BlockEnd end = scene.evidence().end_of(block.sequence);
  if (end.sequence == kNever || !is_passing(block, scene)) return true;
  if (end.stack != 0) {
    const StackTraits& traits = scene.traits.of(end.stack);
    return !traits.empty && traits.activity() != Activity::backward &&
           traits.activity() != Activity::recomputation;
  }
  return end.thread != block.thread;
}

}  // namespace

std::optional<Verdict> optimizer_state(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.has(Trait::optimizer_state_creation))
    return Verdict{Category::optimizer_state, "", "made where the optimizer creates its state",
                   0.97};
  if (traits.activity() != Activity::optimizer || traits.has(Trait::gradient_scaling))
    return std::nullopt;
  if (is_passing(block, scene))
    return Verdict{Category::workspace, "optimizer", "made and freed within one optimizer step",
                   0.85};
  if (scene.evidence().waits_to_replace(comparable_size(block), block.sequence, scene.moment))
    return Verdict{Category::workspace, "optimizer",
                   "made in the optimizer's step; the state that it will replace is still there",
                   0.7};
  return Verdict{Category::optimizer_state, "", "made in the optimizer's step and kept beyond it",
                 0.9};
}

std::optional<Verdict> optimizer_temporary(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (!traits.has(Trait::gradient_scaling)) return std::nullopt;
  return Verdict{Category::workspace, "optimizer", "made while gradients are scaled or clipped",
                 0.85};
}

std::optional<Verdict> parameters_from_stack(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.has(Trait::module_move))
    return Verdict{Category::parameters, "", "made where a module is moved to the device", 0.97};
  const bool creates = (traits.has(Trait::module_creation) ||
                        scene.evidence().is_module_constructor(traits.constructor)) &&
                       !traits.has(Trait::module_forward);
  if (!creates) return std::nullopt;
  if (is_passing(block, scene))
    return Verdict{Category::workspace, "", "made and freed while a module is created", 0.7};
  return Verdict{Category::parameters, "", "made where a module creates its parameters", 0.93};
}

std::optional<Verdict> gradients(const Block& block, const Scene& scene) {
  const StackTraits& traits = scene.traits.of(block.stack);
  if (traits.activity() != Activity::backward) return std::nullopt;
  if (traits.has(Trait::accumulate_grad))
    return Verdict{Category::gradients, "", "made where a parameter's gradient is stored", 0.97};
  if (outlives_backward(block, scene)) {
    const bool shaped = scene.evidence().is_parameter_size(comparable_size(block));
    return Verdict{Category::gradients, "",
                   shaped ? "made in the backward pass, as large as a parameter, kept beyond it"
                          : "made in the backward pass and kept beyond it",
                   shaped ? 0.95 : 0.8};
  }
  const bool scores = traits.has(Trait::softmax) || traits.backward_node.starts_with("Softmax") ||
                      (scene.evidence().is_softmax_size(comparable_size(block)) &&
                       !scene.evidence().is_projection_size(comparable_size(block)));
  if (scores)
    return Verdict{Category::attention, "backward",
                   "gradient of attention scores, gone when the backward pass is done", 0.85};
  if (traits.has(Trait::loss) || scene.evidence().is_logits_size(comparable_size(block)))
    return Verdict{Category::activations, "logits",
                   "gradient of the logits, gone when the backward pass is done", 0.85};
  return Verdict{Category::activations, "backward",
                 "gradient of an activation, gone when the backward pass is done", 0.85};
}

// Where only Python frames were recorded, as snapshots may have it, the threads of the backward
// pass, which run no Python, leave stacks that are empty.
std::optional<Verdict> without_frames(const Block& block, const Scene& scene) {
  const bool recorded = block.stack == 0 && (block.flags & kEventReconstructed) == 0 &&
                        (block.flags & kEventForeignText) != 0;
  if (!recorded || !scene.evidence().empty_stacks_go_back()) return std::nullopt;
  const uint64_t size = comparable_size(block);
  if (outlives_backward(block, scene))
    return Verdict{Category::gradients, "",
                   "made by a thread without Python, as the backward pass has, and kept", 0.7};
  if (scene.evidence().is_softmax_size(size) && !scene.evidence().is_product_size(size))
    return Verdict{Category::attention, "backward",
                   "made by a thread without Python, as large as the scores", 0.6};
  return Verdict{Category::activations, "backward",
                 "made and freed by a thread without Python, as the backward pass has", 0.65};
}

// Memory from before the recording has no stack. Parameters are never freed; an optimizer that
// writes new state puts it in place of the old; Adam keeps two values for each parameter.
std::optional<Verdict> before_recording(const Block& block, const Scene& scene) {
  if ((block.flags & kEventReconstructed) == 0) return std::nullopt;
  const BlockEnd end = scene.evidence().end_of(block.sequence);
  const uint64_t size = comparable_size(block);
  if (end.sequence == kNever) {
    const uint64_t states = scene.evidence().replaced_count(size);
    if (states != 0)
      return Verdict{
          Category::parameters, "",
          "older than the recording and never freed; an optimizer replaces state of this size",
          0.8};
    return Verdict{Category::parameters, "", "older than the recording and never freed", 0.6};
  }
  switch (scene.traits.of(end.stack).activity()) {
    case Activity::optimizer:
      return Verdict{Category::optimizer_state, "",
                     "older than the recording; an optimizer's step puts new state in its place",
                     0.8};
    case Activity::backward:
      return Verdict{Category::activations, "",
                     "older than the recording; the backward pass frees it", 0.7};
    default:
      return std::nullopt;
  }
}

}  // namespace vramtrack
