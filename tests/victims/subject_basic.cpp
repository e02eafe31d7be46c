// Plain device memory: one block, nested callers, threads, streams, and a block that is never
// returned.
#include <cuda_runtime_api.h>

#include <thread>
#include <vector>

#include "subjects.h"
#include "witness.h"

namespace victims {

void device_memory() {
  VICTIM_FRAME;
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, 1 << 20), "device", block, 1 << 20);
  FREES(cudaFree(block), "device", block, 1 << 20);

  void* odd = nullptr;
  ALLOCATES(cudaMalloc(&odd, 1000), "device", odd, 1000);
  FREES(cudaFree(odd), "device", odd, 1000);

  void* rows = nullptr;
  size_t pitch = 0;
  ALLOCATES(cudaMallocPitch(&rows, &pitch, 1000, 64), "device", rows, pitch * 64);
  FREES(cudaFree(rows), "device", rows, pitch * 64);

  const cudaExtent extent{300, 20, 10};
  cudaPitchedPtr box{};
  ALLOCATES(cudaMalloc3D(&box, extent), "device", box.ptr, box.pitch * 20 * 10);
  FREES(cudaFree(box.ptr), "device", box.ptr, box.pitch * 20 * 10);
}

namespace {

__attribute__((noinline)) void* leaf(size_t bytes) {
  VICTIM_FRAME;
  void* block = nullptr;
  ALLOCATES(cudaMalloc(&block, bytes), "device", block, bytes);
  return block;
}

__attribute__((noinline)) void* middle(size_t bytes) {
  VICTIM_FRAME;
  void* const block = HERE(leaf(bytes));
  return block;
}

__attribute__((noinline)) void* recursive(int depth, size_t bytes) {
  VICTIM_FRAME;
  if (depth == 0) return HERE(middle(bytes));
  void* const block = HERE(recursive(depth - 1, bytes));
  return block;
}

}  // namespace

void nested_frames() {
  VICTIM_FRAME;
  void* near = HERE(middle(4096));
  void* far = HERE(recursive(5, 8192));
  FREES(cudaFree(near), "device", near, 4096);
  FREES(cudaFree(far), "device", far, 8192);
}

namespace {

void worker(int number, int rounds) {
  VICTIM_FRAME;
  for (int i = 0; i < rounds; ++i) {
    const size_t bytes = static_cast<size_t>(number + 1) * 65536 + static_cast<size_t>(i) * 512;
    void* block = nullptr;
    ALLOCATES(cudaMalloc(&block, bytes), "device", block, bytes);
    FREES(cudaFree(block), "device", block, bytes);
  }
}

}  // namespace

void several_threads() {
  VICTIM_FRAME;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(worker, i, 8);
  for (std::thread& thread : threads) thread.join();
}

void several_streams() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 3 << 20;
  cudaStream_t streams[3] = {};
  cudaEvent_t done = nullptr;
  SUCCEEDS(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  SUCCEEDS(cudaStreamCreate(&streams[0]));
  SUCCEEDS(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
  SUCCEEDS(cudaStreamCreateWithPriority(&streams[2], cudaStreamNonBlocking, -1));
  for (cudaStream_t stream : streams) {
    void* block = nullptr;
    ALLOCATES(cudaMallocAsync(&block, kBytes, stream), "pool", block, kBytes);
    SUCCEEDS(cudaMemsetAsync(block, 0, kBytes, stream));
    SUCCEEDS(cudaEventRecord(done, stream));
    SUCCEEDS(cudaStreamWaitEvent(streams[0], done, 0));
    // Freed on another stream than it was made on, after that stream has waited.
    FREES(cudaFreeAsync(block, streams[0]), "pool", block, kBytes);
  }
  for (cudaStream_t stream : streams) {
    SUCCEEDS(cudaStreamSynchronize(stream));
    SUCCEEDS(cudaStreamDestroy(stream));
  }
  SUCCEEDS(cudaEventDestroy(done));
  cudaMemPool_t pool = nullptr;
  SUCCEEDS(cudaDeviceGetDefaultMemPool(&pool, 0));
  SUCCEEDS(cudaMemPoolTrimTo(pool, 0));
}

void leak() {
  VICTIM_FRAME;
  void* lost = nullptr;
  ALLOCATES(cudaMalloc(&lost, 7 << 20), "device", lost, 7 << 20);
  say_raw("leak", "\"kind\":\"device\",\"bytes\":" + std::to_string(7 << 20));
}

}  // namespace victims
