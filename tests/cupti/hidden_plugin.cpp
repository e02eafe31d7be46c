// A library that the tracer cannot see into: opened with RTLD_DEEPBIND it binds dlsym to libc, past
// every preload. What it asks of the driver is a planted miss.
#include <cuda.h>
#include <dlfcn.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void* past_the_hooks(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW);
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

// Allocates and frees `bytes`, then allocates them again and keeps them.
EXPORTED int hidden_allocation(size_t bytes) {
  using Allocate = CUresult (*)(CUdeviceptr*, size_t);
  using Free = CUresult (*)(CUdeviceptr);
  const auto allocate = reinterpret_cast<Allocate>(past_the_hooks("libcuda.so.1", "cuMemAlloc_v2"));
  const auto free = reinterpret_cast<Free>(past_the_hooks("libcuda.so.1", "cuMemFree_v2"));
  CUdeviceptr pointer = 0;
  if (allocate == nullptr || free == nullptr) return -1;
  if (allocate(&pointer, bytes) != CUDA_SUCCESS || free(pointer) != CUDA_SUCCESS) return -1;
  return allocate(&pointer, bytes);
}
