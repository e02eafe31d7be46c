// Element-wise kernels over contiguous tensors: vectorized_elementwise_kernel and
// unrolled_elementwise_kernel.
#pragma once

#include <optional>

#include "kernels/functor.h"
#include "kernels/kernel_name.h"

namespace simgpu {

struct ElementwiseKernel {
  std::optional<Functor> functor;  // nothing: the output becomes unknown
  int tensors;                     // output first
  bool casts;                      // the tensors' types are parameters of their own
};

std::optional<ElementwiseKernel> parse_elementwise(const KernelName& name);

void apply_elementwise(const ElementwiseKernel& kernel, void* const* parameters);

}  // namespace simgpu
