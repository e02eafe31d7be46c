// A library that allocates GPU memory on its own account, and forgets it.
#include <cuda_runtime_api.h>

extern "C" int leaky_resize() {
  void* buffer = nullptr;
  return static_cast<int>(cudaMalloc(&buffer, 1 << 20));  // leaks: other_library
}
