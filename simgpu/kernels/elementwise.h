// Element-wise kernels: vectorized_elementwise_kernel and unrolled_elementwise_kernel over
// contiguous tensors, elementwise_kernel over strided ones.
#pragma once

#include <optional>

#include "kernels/functor.h"
#include "kernels/kernel_name.h"

namespace simgpu {

struct ElementwiseKernel {
  std::optional<Functor> functor;  // nothing: the output becomes unknown
  int tensors;                     // output first
  bool strided;                    // all is in one closure: offsets, pointers, functor, types
  bool casts;                      // the tensors' types are given at the launch
};

std::optional<ElementwiseKernel> parse_elementwise(const KernelName& name);

void apply_elementwise(const ElementwiseKernel& kernel, void* const* parameters);

}  // namespace simgpu
