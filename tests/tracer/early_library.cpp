// Uses the GPU in its constructor, which comes before those of preloaded libraries, and in its
// destructor.
#include <cuda_runtime_api.h>

namespace {

void* g_memory = nullptr;

__attribute__((constructor)) void allocate() {
  cudaMalloc(&g_memory, 1 << 20);
}

__attribute__((destructor)) void release() {
  cudaFree(g_memory);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int early_has_memory() {
  return g_memory != nullptr ? 1 : 0;
}
