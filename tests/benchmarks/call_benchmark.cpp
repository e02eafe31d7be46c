// call_benchmark [CALLS [DEPTH]]: nanoseconds of CPU time per pair of cudaMallocAsync and
// cudaFreeAsync, from below DEPTH frames. Run alone and under the tracer, it tells what the tracer
// adds (overhead.py).
#include <cuda_runtime_api.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace {

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

__attribute__((noinline)) int below(int depth, size_t bytes) {
  if (depth > 0) {
    const int result = below(depth - 1, bytes);
    __asm__ volatile("" : : : "memory");  // a frame, not a tail call
    return result;
  }
  void* pointer = nullptr;
  if (cudaMallocAsync(&pointer, bytes, nullptr) != cudaSuccess) return 1;
  return cudaFreeAsync(pointer, nullptr) == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int depth = argc > 2 ? std::atoi(argv[2]) : 20;
  for (int i = 0; i < 1000; ++i)
    if (below(depth, 512) != 0) return 1;
  const double begin = thread_ns();
  for (int i = 0; i < calls; ++i) below(depth, 512 << (i % 10));
  std::printf("%.0f\n", (thread_ns() - begin) / calls);
  return 0;
}
