// Kernel launches of both generations: cudaLaunchKernel by the host's address, and nvcc 13's
// __cudaLaunchKernel by handle. All end in the driver's cuLaunchKernel, cuLaunchKernelEx or
// cuLaunchCooperativeKernel, with the CUkernel handle in place of the function, as the driver
// documents that it may be. Compiled twice: the second time under the names in _ptsz.
#include "runtime/call.h"
#include "runtime/launch_config.h"
#include "runtime/registry.h"

using namespace simgpu;

namespace {

bool is_empty(dim3 grid) {
  return grid.x == 0 || grid.y == 0 || grid.z == 0;
}

// An empty grid is accepted and runs nothing.
cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream) {
  if (is_empty(grid)) return cudaSuccess;
  return call(&StreamTable::LaunchKernel, kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
              static_cast<unsigned int>(shared_bytes), stream, args, static_cast<void**>(nullptr));
}

cudaError_t find_in_context(const void* function, CUkernel* kernel) {
  const cudaError_t error = enter_context();
  return error != cudaSuccess ? error : find_kernel(function, kernel);
}

}  // namespace

// A header of nvcc's redirects this name through an inline function.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define LAUNCH_BY_HANDLE __cudaLaunchKernel_ptsz
#else
#define LAUNCH_BY_HANDLE __cudaLaunchKernel
#endif

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args,
                             size_t sharedMem, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess) error = launch(kernel, gridDim, blockDim, args, sharedMem, stream);
  return record(error);
}

SIMGPU_EXPORT cudaError_t LAUNCH_BY_HANDLE(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
                                           void** args, size_t sharedMem, cudaStream_t stream) {
  cudaError_t error = enter_context();
  if (error == cudaSuccess && kernel == nullptr) error = cudaErrorInvalidDeviceFunction;
  if (error == cudaSuccess) {
    error = launch(kernel, gridDim, blockDim, args, sharedMem, stream);
  }
  return record(error);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  CUkernel kernel = nullptr;
  cudaError_t error = config == nullptr ? cudaErrorInvalidValue : find_in_context(func, &kernel);
  if (error == cudaSuccess && !is_empty(config->gridDim)) {
    const CUlaunchConfig launch_config = to_driver(*config);
    error = call(&StreamTable::LaunchKernelEx, &launch_config, kernel, args,
                 static_cast<void**>(nullptr));
  }
  return record(error);
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args,
                                        size_t sharedMem, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess && !is_empty(gridDim)) {
    error = call(&StreamTable::LaunchCooperativeKernel, kernel, gridDim.x, gridDim.y, gridDim.z,
                 blockDim.x, blockDim.y, blockDim.z, static_cast<unsigned int>(sharedMem), stream,
                 args);
  }
  return record(error);
}
