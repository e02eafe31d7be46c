// Batched factorisations and solvers of cuBLAS: nothing is computed, and each succeeds. Where they
// went wrong they say so in `info`, which is the host's or the device's as documented; on the
// device it becomes unknown, which reads as zero.
#include "common/driver.h"
#include "common/entry.h"
#include "cublas/handle.h"

namespace {

using Handle = simgpu::CublasHandle;

int run(const Handle* handle, simgpu::LibraryKernel& kernel,
        std::initializer_list<const void*> operands, int* host_info, int* device_info, int batch) {
  if (!handle) return simgpu::kCublasNotInitialized;
  kernel.launch(handle->stream, operands);
  if (host_info) *host_info = 0;
  if (device_info && batch > 0)
    simgpu::forget(device_info, sizeof(int) * static_cast<std::size_t>(batch));
  return simgpu::kCublasSuccess;
}

}  // namespace

#define FAMILY(name)                                                                               \
  ENTRY(name##geqrfBatched)                                                                        \
  (Handle * handle, int, int, void* a, int, void* tau, int* info, int) {                           \
    static simgpu::LibraryKernel kernel(#name "geqrfBatched", 2);                                  \
    return run(handle, kernel, {a, tau}, info, nullptr, 0);                                        \
  }                                                                                                \
  ENTRY(name##gelsBatched)                                                                         \
  (Handle * handle, int, int, int, int, void* a, int, void* c, int, int* info, int* infos,         \
   int batch) {                                                                                    \
    static simgpu::LibraryKernel kernel(#name "gelsBatched", 3);                                   \
    return run(handle, kernel, {a, c, infos}, info, infos, batch);                                 \
  }                                                                                                \
  ENTRY(name##getrsBatched)                                                                        \
  (Handle * handle, int, int, int, const void* a, int, const int* pivots, void* b, int, int* info, \
   int) {                                                                                          \
    static simgpu::LibraryKernel kernel(#name "getrsBatched", 3);                                  \
    return run(handle, kernel, {a, pivots, b}, info, nullptr, 0);                                  \
  }                                                                                                \
  ENTRY(name##getrfBatched)                                                                        \
  (Handle * handle, int, void* a, int, int* pivots, int* infos, int batch) {                       \
    static simgpu::LibraryKernel kernel(#name "getrfBatched", 3);                                  \
    return run(handle, kernel, {a, pivots, infos}, nullptr, infos, batch);                         \
  }                                                                                                \
  ENTRY(name##getriBatched)                                                                        \
  (Handle * handle, int, const void* a, int, const int* pivots, void* c, int, int* infos,          \
   int batch) {                                                                                    \
    static simgpu::LibraryKernel kernel(#name "getriBatched", 4);                                  \
    return run(handle, kernel, {a, pivots, c, infos}, nullptr, infos, batch);                      \
  }                                                                                                \
  ENTRY(name##matinvBatched)                                                                       \
  (Handle * handle, int, const void* a, int, void* inverse, int, int* infos, int batch) {          \
    static simgpu::LibraryKernel kernel(#name "matinvBatched", 3);                                 \
    return run(handle, kernel, {a, inverse, infos}, nullptr, infos, batch);                        \
  }

FAMILY(cublasS)
FAMILY(cublasD)
FAMILY(cublasC)
FAMILY(cublasZ)
