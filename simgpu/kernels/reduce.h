// Reductions (reduce_kernel): small ones of known operation are followed, of others the outputs
// become unknown.
#pragma once

#include <optional>

#include "kernels/kernel_name.h"
#include "kernels/scalar.h"

namespace simgpu {

enum class Reduction : std::uint8_t { kSum, kMaximum, kMinimum, kAny, kAll, kOther };

struct ReduceKernel {
  Reduction reduction;
  std::optional<ScalarKind> input;
  std::optional<ScalarKind> output;
  std::optional<ScalarKind> accumulated;
};

std::optional<ReduceKernel> parse_reduce(const KernelName& name);

void apply_reduce(const ReduceKernel& kernel, void* const* parameters);

}  // namespace simgpu
