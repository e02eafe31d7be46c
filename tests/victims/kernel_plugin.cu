// A library with a kernel of its own, for programs that load and unload it (victim_host.cpp).
#include <cuda_runtime.h>

namespace {

__global__ void plugin_kernel(int* out) {
  *out = 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int kernel_plugin_run(void) {
  int* out = nullptr;
  cudaError_t error = cudaMalloc(&out, sizeof *out);
  if (error != cudaSuccess) return error;
  plugin_kernel<<<1, 1>>>(out);
  error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  const cudaError_t freed = cudaFree(out);
  return error != cudaSuccess ? error : freed;
}
