// The rest of cuBLAS, from its table.
#include "common/stubs.h"
#include "common/driver.h"
#include "cublas/handle.h"

// clang-format off
#define SIMGPU_NOT_SUPPORTED simgpu::kCublasNotSupported
#define COMPUTES(name)                                                                       \
  extern "C" __attribute__((visibility("default"))) int name(simgpu::CublasHandle* handle) { \
    if (!handle) return simgpu::kCublasNotInitialized;                                       \
    static simgpu::LibraryKernel kernel(#name);                                              \
    kernel.launch(handle->stream);                                                           \
    return simgpu::kCublasSuccess;                                                           \
  }
#define REDUCES(name)                                                                        \
  extern "C" __attribute__((visibility("default"))) int name(simgpu::CublasHandle* handle) { \
    if (!handle) return simgpu::kCublasNotInitialized;                                       \
    if (handle->pointer_mode != simgpu::kPointerDevice) {                                    \
      static bool said;                                                                      \
      simgpu::say_not_simulated(#name " with its result on the host", &said);                \
      return simgpu::kCublasNotSupported;                                                    \
    }                                                                                        \
    static simgpu::LibraryKernel kernel(#name);                                              \
    kernel.launch(handle->stream);                                                           \
    return simgpu::kCublasSuccess;                                                           \
  }
// clang-format on
#include "cublas/entry_points.def"
