// cuda.h as the driver's author sees it: every version of every function, and nothing renamed.
//
// The functions are declared with default visibility, so that a definition in any file of this
// folder is an export, and everything else stays hidden. What no file defines is answered by the
// weak definitions of stubs.cpp.
#ifndef SIMGPU_DRIVER_API_H
#define SIMGPU_DRIVER_API_H

#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudaProfiler.h>

#include "../simgpu.h"
#pragma GCC visibility pop

namespace simgpu {

[[nodiscard]] constexpr bool likely(bool condition) {
  return __builtin_expect(condition, 1);
}

}  // namespace simgpu

// Leaves the function with the error that `expression` gives, if it gives one.
#define SIMGPU_TRY(expression)                                                \
  do {                                                                        \
    if (CUresult simgpu_result = (expression); simgpu_result != CUDA_SUCCESS) \
      return simgpu_result;                                                   \
  } while (false)

#endif  // SIMGPU_DRIVER_API_H
