// What kernels do with a block, where neither labels nor stacks tell what it is.
#include "attribution/torch_rules.h"

namespace vramtrack {

std::optional<Verdict> by_kernels(const Block& block, const Scene& scene) {
  switch (scene.kernel_role(block)) {
    case KernelRole::adam_parameter:
      return Verdict{Category::parameters, "", "Adam's kernels update it as a parameter", 0.8};
    case KernelRole::adam_gradient:
      return Verdict{Category::gradients, "", "Adam's kernels read it as a gradient", 0.75};
    case KernelRole::adam_first_moment:
      return Verdict{Category::optimizer_state, "", "Adam's kernels update it as a first moment",
                     0.8};
    case KernelRole::adam_second_moment:
      return Verdict{Category::optimizer_state, "", "Adam's kernels update it as a second moment",
                     0.8};
    case KernelRole::softmax:
      return Verdict{Category::attention, "", "a softmax wrote it", 0.5};
    case KernelRole::log_sum_exp:
      return Verdict{Category::attention, "", "fused attention made it beside its output", 0.6};
    case KernelRole::none:
      break;
  }
  return std::nullopt;
}

}  // namespace vramtrack
