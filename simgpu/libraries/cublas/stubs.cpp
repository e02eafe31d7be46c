// The rest of cuBLAS, from its table.
#include "common/stubs.h"
#include "cublas/handle.h"

#define SIMGPU_NOT_SUPPORTED simgpu::kCublasNotSupported
#define REDUCES(name)                                                                        \
  extern "C" __attribute__((visibility("default"))) int name(simgpu::CublasHandle* handle) { \
    if (!handle) return simgpu::kCublasNotInitialized;                                       \
    if (handle->pointer_mode == simgpu::kPointerDevice) return simgpu::kCublasSuccess;       \
    static bool said;                                                                        \
    simgpu::say_not_simulated(#name " with its result on the host", &said);                  \
    return simgpu::kCublasNotSupported;                                                      \
  }
#include "cublas/entry_points.def"
