// What goes wrong: requests that do not fit, pointers that are not allocations, null arguments,
// last errors.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <thread>

#include "driver_calls.h"
#include "subjects.h"
#include "witness.h"

namespace victims {

// More than any card has; then the program clears the error and goes on.
void failing_request() {
  VICTIM_FRAME;
  size_t free_bytes = 0;
  size_t total = 0;
  SUCCEEDS(cudaMemGetInfo(&free_bytes, &total));
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, total + 1), "device", block, total + 1);
  GIVES(cudaErrorMemoryAllocation, cudaPeekAtLastError());
  GIVES(cudaErrorMemoryAllocation, cudaGetLastError());
  GIVES(cudaSuccess, cudaGetLastError());
  void* small = nullptr;
  ALLOCATES(cudaMalloc(&small, 4096), "device", small, 4096);
  FREES(cudaFree(small), "device", small, 4096);
  size_t after = 0;
  SUCCEEDS(cudaMemGetInfo(&after, &total));
  say_raw("free-memory",
          "\"expected\":" + std::to_string(free_bytes) + ",\"is\":" + std::to_string(after));
}

void misuse() {
  VICTIM_FRAME;
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, 1 << 16), "device", block, 1 << 16);
  GIVES(cudaErrorInvalidValue, cudaFree(static_cast<char*>(block) + 256));
  FREES(cudaFree(block), "device", block, 1 << 16);
  GIVES(cudaErrorInvalidValue, cudaFree(block));
  int on_stack = 0;
  GIVES(cudaErrorInvalidValue, cudaFree(&on_stack));
  GIVES(cudaErrorInvalidValue, cudaFreeHost(&on_stack));
  GIVES(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(&on_stack));
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(1000));
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(-1));
  GIVES(cudaErrorInvalidMemcpyDirection,
        cudaMemcpy(&on_stack, &on_stack, 4, static_cast<cudaMemcpyKind>(77)));
  GIVES(cudaErrorInvalidDeviceFunction,
        cudaLaunchKernel(&on_stack, dim3(1), dim3(1), nullptr, 0, nullptr));
  GIVES(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&block, &on_stack));
  GIVES(cudaErrorInvalidSymbol, cudaGetLastError());
  GIVES(cudaSuccess, cudaMalloc(&block, 0));
  say_raw("null-pointer", "\"expected\":1,\"is\":" + std::to_string(block == nullptr ? 1 : 0));
  GIVES(cudaSuccess, cudaFree(nullptr));
  GIVES(cudaSuccess, cudaFreeHost(nullptr));
  GIVES(cudaSuccess, cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
}

void errors_per_thread() {
  VICTIM_FRAME;
  GIVES(cudaErrorInvalidDevice, cudaSetDevice(-1));
  std::thread([] { GIVES(cudaSuccess, cudaPeekAtLastError()); }).join();
  GIVES(cudaSuccess, cudaFree(nullptr));  // a success does not clear it
  GIVES(cudaErrorInvalidDevice, cudaPeekAtLastError());
  GIVES(cudaErrorInvalidDevice, cudaGetLastError());
  GIVES(cudaSuccess, cudaPeekAtLastError());
}

// Nothing may be written, and nobody may crash: neither the driver nor what is hooked in between.
void null_arguments() {
  VICTIM_FRAME;
  SUCCEEDS(cudaFree(nullptr));
  void* pointer = nullptr;
  size_t size = 0;
  GIVES(cudaErrorInvalidValue, cudaMalloc(nullptr, 1024));
  GIVES(cudaErrorInvalidValue, cudaMallocHost(nullptr, 1024));
  GIVES(cudaErrorInvalidValue, cudaMallocManaged(nullptr, 1024, cudaMemAttachGlobal));
  GIVES(cudaErrorInvalidValue, cudaMallocPitch(nullptr, &size, 64, 64));
  GIVES(cudaErrorInvalidValue, cudaMallocPitch(&pointer, nullptr, 64, 64));
  GIVES(cudaErrorInvalidValue, cudaMallocAsync(nullptr, 1024, nullptr));
  GIVES(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
  GIVES(cudaErrorInvalidValue, cudaEventCreateWithFlags(nullptr, 0));
  GIVES(cudaErrorInvalidValue,
        cudaGetDriverEntryPointByVersion("cuInit", nullptr, 12000, 0, nullptr));
  GIVES(cudaErrorInvalidValue, DRIVER_CALL(cuMemAlloc, nullptr, 1024));
  GIVES(cudaErrorInvalidValue, DRIVER_CALL(cuMemCreate, nullptr, 1 << 21, nullptr, 0));
  // Only one of the two numbers is wanted; drivers accept that or refuse it, and nobody may crash.
  say_raw("accepted", "\"api\":\"cuMemGetInfo\",\"result\":" +
                          std::to_string(DRIVER_CALL(cuMemGetInfo, nullptr, &size)));
}

}  // namespace victims
