// What a block is, by the kernels that were given it: an optimizer's step passes parameters,
// gradients and moments in a fixed order, softmax writes scores, fused attention makes its output
// and the log-sum-exp of each row. Weaker than what the program says of itself; it holds where no
// label and no stack does.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_KERNEL_ROLES_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_KERNEL_ROLES_H

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "replay/state.h"

namespace vramtrack {

enum class KernelRole : uint8_t {
  none,
  adam_parameter,
  adam_gradient,
  adam_first_moment,
  adam_second_moment,
  softmax,
  log_sum_exp,
};
// "adam/first moment"; empty for none.
std::string_view name_of(KernelRole role);

class KernelRoles {
 public:
  // One pass over the recording. Of the blocks that are live after `moment`, a sequence number.
  KernelRoles(const Recording& recording, uint64_t moment);

  [[nodiscard]] KernelRole of(const Block& block) const;

 private:
  std::unordered_map<uint64_t, KernelRole> roles_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_KERNEL_ROLES_H
