// What is known of a kernel by its handle: its name, as an id of this file, and where its
// parameters lie. Both are asked of the driver once and kept until code is unloaded, when handles
// may come again for something else.
#ifndef VRAMTRACK_TRACER_HOOKS_KERNEL_FUNCTIONS_H
#define VRAMTRACK_TRACER_HOOKS_KERNEL_FUNCTIONS_H

#include <cstdint>

#include <vramtrack/tensor_lists.h>

#include "hooks/cuda_api.h"

namespace vramtrack {

struct ParameterPlace {
  uint16_t offset = 0;  // in the buffer of a launch that passes one
  uint16_t bytes = 0;
};

// The parameters of a kernel, up to the last that has room for an address.
struct ParameterLayout {
  const ParameterPlace* places = nullptr;
  uint32_t count = 0;
  bool known = false;   // false: nothing of the parameters may be read
  TensorLists tensors;  // in the first parameter
};

// The name under which a handle was looked up.
void remember_kernel(CUkernel kernel, const char* name);
void remember_function(CUfunction function, const char* name);
// The function that a kernel is in a context has the kernel's name.
void remember_function_of(CUkernel kernel, CUfunction function);
void forget_kernels();  // some code was unloaded

// A launch takes functions and kernels under one type.
uint32_t kernel_name(CUfunction function);  // 0 where the driver does not know
ParameterLayout parameter_layout(CUfunction function);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_KERNEL_FUNCTIONS_H
