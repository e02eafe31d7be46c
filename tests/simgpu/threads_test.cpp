// Many threads at once: nothing is lost, and what is left at the end is what was there before.
#include <atomic>
#include <thread>
#include <vector>

#include "context.h"

using namespace vramtrack::test;

namespace {

// One thread's work; false at the first call that fails.
bool work(CUcontext context, unsigned seed) {
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return false;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  bool ok = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
            cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  for (unsigned i = 0; ok && i < 300; ++i) {
    const std::size_t size = 1 + (seed * 7919 + i * 104729) % 100000;
    const unsigned sent = seed * 1000 + i;
    unsigned back = 0;
    CUdeviceptr plain = 0, pooled = 0;
    ok = cuMemAlloc(&plain, size + 4) == CUDA_SUCCESS &&
         cuMemAllocAsync(&pooled, size, stream) == CUDA_SUCCESS &&
         cuMemcpyHtoDAsync(plain, &sent, 4, stream) == CUDA_SUCCESS &&
         cuEventRecord(event, stream) == CUDA_SUCCESS &&
         cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS &&
         cuMemcpyDtoH(&back, plain, 4) == CUDA_SUCCESS && back == sent &&
         cuMemFreeAsync(pooled, stream) == CUDA_SUCCESS && cuMemFree(plain) == CUDA_SUCCESS;
  }
  cuEventDestroy(event);
  cuStreamDestroy(stream);
  return ok;
}

// Captures of one thread do not disturb the others, in the mode that is the thread's own.
bool capture(CUcontext context, CUdeviceptr memory) {
  if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return false;
  CUstream stream = nullptr;
  bool ok = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
  for (int i = 0; ok && i < 100; ++i) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ok = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS &&
         cuMemsetD8Async(memory, 1, 64, stream) == CUDA_SUCCESS &&
         cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS &&
         cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS &&
         cuGraphLaunch(exec, stream) == CUDA_SUCCESS && cuGraphExecDestroy(exec) == CUDA_SUCCESS &&
         cuGraphDestroy(graph) == CUDA_SUCCESS;
  }
  cuStreamDestroy(stream);
  return ok;
}

}  // namespace

TEST_CASE("threads allocate, copy, record and capture side by side") {
  SimulatedContext gpu;
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, 64));
  const std::size_t free = gpu.free_bytes();
  std::atomic<int> failed{0};
  // A thread-local capture elsewhere forbids nothing to threads of the same mode.
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
      cuThreadExchangeStreamCaptureMode(&mode);
      if (!work(gpu.context, t)) ++failed;
    });
  threads.emplace_back([&] {
    if (!capture(gpu.context, memory)) ++failed;
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  OK(cuCtxSynchronize());
  CHECK(gpu.free_bytes() == free);
  OK(cuMemFree(memory));
}
