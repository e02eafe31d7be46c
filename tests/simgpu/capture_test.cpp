// Stream capture and graphs: the state machine that the driver API documents.
#include <atomic>
#include <vector>

#include "context.h"

using namespace vramtrack::test;

namespace {

struct Streams : SimulatedContext {
  Streams() {
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&memory, 4096));
  }
  ~Streams() {
    cuMemFree(memory);
    cuEventDestroy(fork);
    cuEventDestroy(join);
    cuStreamDestroy(b);
    cuStreamDestroy(a);
  }
  void set(CUstream stream, unsigned value) { OK(cuMemsetD32Async(memory, value, 1, stream)); }
  CUstreamCaptureStatus status(CUstream stream) {
    CUstreamCaptureStatus now{};
    OK(cuStreamIsCapturing(stream, &now));
    return now;
  }

  CUstream a = nullptr, b = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
};

std::size_t node_count(CUgraph graph) {
  std::size_t count = 0;
  OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

std::size_t edge_count(CUgraph graph) {
  std::size_t count = 0;
  OK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  return count;
}

}  // namespace

TEST_CASE("what is captured happens at the launch, not before") {
  Streams s;
  s.set(s.a, 1);
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(s.status(s.a) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(s.status(s.b) == CU_STREAM_CAPTURE_STATUS_NONE);
  s.set(s.a, 2);
  OK(cuStreamEndCapture(s.a, &s.graph));
  CHECK(s.status(s.a) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(node_count(s.graph) == 1);
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, s.memory, 4));
  CHECK(value == 1);
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate(&exec, s.graph, 0));
  OK(cuGraphLaunch(exec, s.a));
  OK(cuMemcpyDtoH(&value, s.memory, 4));
  CHECK(value == 2);
  OK(cuGraphExecDestroy(exec));
  CHECK(cuGraphLaunch(exec, s.a) == CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy(s.graph));
}

TEST_CASE("streams fork into a capture and join it through events") {
  Streams s;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  s.set(s.a, 1);
  OK(cuEventRecord(s.fork, s.a));
  OK(cuStreamWaitEvent(s.b, s.fork, 0));
  CHECK(s.status(s.b) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(cuEventQuery(s.fork) != CUDA_SUCCESS);
  // The query was one of the calls that a global capture forbids: begin anew.
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  s.set(s.a, 1);
  OK(cuEventRecord(s.fork, s.a));
  OK(cuStreamWaitEvent(s.b, s.fork, 0));
  CHECK(cuEventQuery(s.fork) == CUDA_ERROR_CAPTURED_EVENT);
  s.set(s.b, 2);
  s.set(s.a, 3);
  OK(cuEventRecord(s.join, s.b));
  CUstreamCaptureStatus status{};
  cuuint64_t id_a = 0, id_b = 0;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  OK(cuStreamGetCaptureInfo(s.b, &status, &id_b, nullptr, nullptr, nullptr, nullptr));
  OK(cuStreamWaitEvent(s.a, s.join, 0));
  OK(cuStreamGetCaptureInfo(s.a, &status, &id_a, nullptr, &nodes, nullptr, &count));
  CHECK(id_a == id_b);
  CHECK(count == 2);
  s.set(s.a, 4);
  CHECK(cuStreamEndCapture(s.b, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(s.status(s.b) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("a diamond has four nodes and four edges") {
  Streams s;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  s.set(s.a, 1);
  OK(cuEventRecord(s.fork, s.a));
  OK(cuStreamWaitEvent(s.b, s.fork, 0));
  s.set(s.b, 2);
  s.set(s.a, 3);
  OK(cuEventRecord(s.join, s.b));
  OK(cuStreamWaitEvent(s.a, s.join, 0));
  s.set(s.a, 4);
  OK(cuStreamEndCapture(s.a, &s.graph));
  CHECK(node_count(s.graph) == 4);
  CHECK(edge_count(s.graph) == 4);
  std::size_t roots = 0;
  OK(cuGraphGetRootNodes(s.graph, nullptr, &roots));
  CHECK(roots == 1);
  OK(cuGraphDestroy(s.graph));
}

TEST_CASE("a fork that does not join spoils the capture") {
  Streams s;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  s.set(s.a, 1);
  OK(cuEventRecord(s.fork, s.a));
  OK(cuStreamWaitEvent(s.b, s.fork, 0));
  s.set(s.b, 2);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(s.graph == nullptr);
  CHECK(s.status(s.b) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("a capture cannot wait for work outside, nor two become one") {
  Streams s;
  OK(cuEventRecord(s.fork, s.b));
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuStreamWaitEvent(s.a, s.fork, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuStreamBeginCapture(s.b, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuEventRecord(s.fork, s.a));
  CHECK(cuStreamWaitEvent(s.b, s.fork, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CHECK(cuStreamEndCapture(s.b, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("unsafe calls spoil a global capture, and not a relaxed thread's") {
  Streams s;
  CUdeviceptr pointer = 0;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAlloc(&pointer, 4096) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(s.status(s.a) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuMemsetD8Async(s.memory, 0, 1, s.a) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  // As PyTorch allocates while it captures.
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuMemAlloc(&pointer, 4096));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(cuStreamSynchronize(s.a) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamEndCapture(s.a, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuMemFree(pointer));
}

TEST_CASE("the legacy stream cannot be captured, nor used beside a blocking stream's capture") {
  Streams s;
  CHECK(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstream blocking = nullptr;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD8Async(s.memory, 0, 1, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(cuStreamEndCapture(blocking, &s.graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK(cuStreamDestroy(blocking));
  OK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &s.graph));
  OK(cuGraphDestroy(s.graph));
}

TEST_CASE("dependencies can be replaced while capturing") {
  Streams s;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  s.set(s.a, 1);
  OK(cuStreamUpdateCaptureDependencies(s.a, nullptr, nullptr, 0,
                                       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  s.set(s.a, 2);
  OK(cuStreamEndCapture(s.a, &s.graph));
  CHECK(node_count(s.graph) == 2);
  CHECK(edge_count(s.graph) == 0);
  OK(cuGraphDestroy(s.graph));
  CHECK(cuStreamUpdateCaptureDependencies(s.a, nullptr, nullptr, 0,
                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES) ==
        CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("memory nodes hold physical memory from the first launch to the end of the graph") {
  Streams s;
  CUdeviceptr pointer = 0;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemAllocAsync(&pointer, 3 * kMiB, s.a));
  OK(cuMemsetD8Async(pointer, 1, 100, s.a));
  OK(cuMemFreeAsync(pointer, s.a));
  OK(cuStreamEndCapture(s.a, &s.graph));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate(&exec, s.graph, 0));
  CHECK(s.usage().graph == 0);
  OK(cuGraphLaunch(exec, s.a));
  OK(cuGraphLaunch(exec, s.a));
  CHECK(s.usage().graph == 3 * kMiB);
  cuuint64_t used = 1, high = 0;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &high));
  CHECK(used == 0);
  CHECK(high == 3 * kMiB);
  OK(cuDeviceGraphMemTrim(0));
  CHECK(s.usage().graph == 0);
  OK(cuGraphLaunch(exec, s.a));
  CHECK(s.usage().graph == 3 * kMiB);
  OK(cuGraphExecDestroy(exec));
  CHECK(s.usage().graph == 0);
  OK(cuGraphDestroy(s.graph));
}

TEST_CASE("what a graph leaves allocated is the user's to free, before it runs again") {
  Streams s;
  CUdeviceptr pointer = 0;
  OK(cuStreamBeginCapture(s.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemAllocAsync(&pointer, kMiB, s.a));
  OK(cuStreamEndCapture(s.a, &s.graph));
  CUgraphExec exec = nullptr, freeing = nullptr;
  OK(cuGraphInstantiate(&exec, s.graph, 0));
  OK(cuGraphLaunch(exec, s.a));
  CHECK(cuGraphLaunch(exec, s.a) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeAsync(pointer, s.a));
  OK(cuGraphLaunch(exec, s.a));
  OK(cuMemFree(pointer));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiate(&freeing, s.graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  OK(cuGraphLaunch(freeing, s.a));
  OK(cuGraphLaunch(freeing, s.a));
  CHECK(s.usage().graph == kMiB);
  OK(cuMemFree(pointer));
  OK(cuGraphExecDestroy(freeing));
  CHECK(s.usage().graph == 0);
  OK(cuGraphDestroy(s.graph));
}

TEST_CASE("user objects are destroyed with the last graph that holds them") {
  Streams s;
  static std::atomic<int> destroyed{0};
  destroyed = 0;
  CUuserObject object = nullptr;
  OK(cuUserObjectCreate(
      &object, &s, [](void*) { ++destroyed; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cuGraphCreate(&s.graph, 0));
  OK(cuGraphRetainUserObject(s.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = nullptr;
  OK(cuGraphInstantiate(&exec, s.graph, 0));
  OK(cuGraphDestroy(s.graph));
  OK(cuCtxSynchronize());
  CHECK(destroyed == 0);
  OK(cuGraphExecDestroy(exec));
  // The destructor runs after what was submitted before; a host function behind it says when.
  OK(cuLaunchHostFunc(
      s.a, [](void*) {}, nullptr));
  OK(cuStreamSynchronize(s.a));
  CHECK(destroyed == 1);
}

TEST_CASE("graphs built by hand") {
  Streams s;
  OK(cuGraphCreate(&s.graph, 0));
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = s.memory;
  set.value = 77;
  set.elementSize = 4;
  set.width = 1;
  set.height = 1;
  CUgraphNode first = nullptr, second = nullptr, third = nullptr;
  OK(cuGraphAddMemsetNode(&first, s.graph, nullptr, 0, &set, s.context));
  OK(cuGraphAddEmptyNode(&second, s.graph, &first, 1));
  OK(cuGraphAddEmptyNode(&third, s.graph, &second, 1));
  CUgraphNodeType type{};
  OK(cuGraphNodeGetType(first, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_MEMSET);
  // A cycle can be drawn, but not run.
  OK(cuGraphAddDependencies(s.graph, &third, &second, nullptr, 1));
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, s.graph, 0) != CUDA_SUCCESS);
  OK(cuGraphRemoveDependencies(s.graph, &third, &second, nullptr, 1));
  OK(cuGraphInstantiate(&exec, s.graph, 0));
  OK(cuGraphLaunch(exec, s.a));
  unsigned value = 0;
  OK(cuMemcpyDtoH(&value, s.memory, 4));
  CHECK(value == 77);
  set.value = 78;
  OK(cuGraphExecMemsetNodeSetParams(exec, first, &set, s.context));
  OK(cuGraphLaunch(exec, s.a));
  OK(cuMemcpyDtoH(&value, s.memory, 4));
  CHECK(value == 78);
  OK(cuGraphDestroyNode(second));
  CHECK(node_count(s.graph) == 2);
  CHECK(edge_count(s.graph) == 0);
  CUgraphExecUpdateResultInfo info{};
  CHECK(cuGraphExecUpdate(exec, s.graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(s.graph));
}
