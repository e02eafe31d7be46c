// A library that reaches the CUDA runtime by its own RPATH, as a wheel's libraries do. The host
// program has nothing of CUDA: it opens this with whatever flags it likes (victim_host.cpp).
//
// Built a second time with VICTIM_ALLOCATE_IN_CONSTRUCTOR, which calls the runtime while dlopen
// still holds the loader's lock.
#include <cuda_runtime_api.h>

#include <cstdio>

namespace {

constexpr size_t kBytes = 5 << 20;

int allocate_and_free() {
  void* block = nullptr;
  const cudaError_t allocated = cudaMalloc(&block, kBytes);
  if (allocated != cudaSuccess) return allocated;
  return cudaFree(block);
}

#ifdef VICTIM_ALLOCATE_IN_CONSTRUCTOR
int constructor_result = -1;

__attribute__((constructor)) void allocate_while_loading() {
  constructor_result = allocate_and_free();
}
#endif

}  // namespace

extern "C" __attribute__((visibility("default"))) int plugin_allocate(void** block, size_t bytes) {
  return cudaMalloc(block, bytes);
}

extern "C" __attribute__((visibility("default"))) int plugin_free(void* block) {
  return cudaFree(block);
}

extern "C" __attribute__((visibility("default"))) int plugin_run(void) {
#ifdef VICTIM_ALLOCATE_IN_CONSTRUCTOR
  if (constructor_result != 0) return constructor_result;
#endif
  return allocate_and_free();
}
