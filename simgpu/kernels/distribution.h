// Random numbers (distribution_elementwise_grid_stride_kernel): whatever was known of the output is
// known no longer.
#pragma once

#include "kernels/kernel_name.h"

namespace simgpu {

bool is_distribution(const KernelName& name);

void apply_distribution(void* const* parameters);

}  // namespace simgpu
