// Memory that belongs to a graph: an allocation node, its use, its free node, and what the device
// keeps after the launch.
#include <cuda_runtime_api.h>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

uint64_t graph_attribute(cudaGraphMemAttributeType name) {
  uint64_t value = 0;
  SUCCEEDS(cudaDeviceGetGraphMemAttribute(0, name, &value));
  return value;
}

void say_graph(const char* moment) {
  say_raw("graph-memory",
          "\"moment\":\"" + std::string(moment) + "\",\"reserved\":" +
              std::to_string(graph_attribute(cudaGraphMemAttrReservedMemCurrent)) +
              ",\"used\":" + std::to_string(graph_attribute(cudaGraphMemAttrUsedMemCurrent)));
}

}  // namespace

void graph_memory() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 6 << 20;
  cudaStream_t stream = nullptr;
  SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph = nullptr;
  SUCCEEDS(cudaGraphCreate(&graph, 0));

  cudaMemAllocNodeParams allocation{};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.poolProps.location.id = 0;
  allocation.bytesize = kBytes;
  cudaGraphNode_t allocate = nullptr;
  SUCCEEDS(cudaGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &allocation));
  cudaMemsetParams set{};
  set.dst = allocation.dptr;
  set.elementSize = 1;
  set.width = kBytes;
  set.height = 1;
  cudaGraphNode_t fill = nullptr;
  SUCCEEDS(cudaGraphAddMemsetNode(&fill, graph, &allocate, 1, &set));
  cudaGraphNode_t release = nullptr;
  SUCCEEDS(cudaGraphAddMemFreeNode(&release, graph, &fill, 1, allocation.dptr));
  size_t nodes = 0;
  SUCCEEDS(cudaGraphGetNodes(graph, nullptr, &nodes));
  say_raw("graph-nodes", "\"expected\":3,\"is\":" + std::to_string(nodes));

  cudaGraphExec_t executable = nullptr;
  SUCCEEDS(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  say_graph("instantiated");
  SUCCEEDS(cudaGraphLaunch(executable, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  say_graph("launched");
  SUCCEEDS(cudaGraphExecDestroy(executable));
  SUCCEEDS(cudaGraphDestroy(graph));
  SUCCEEDS(cudaDeviceGraphMemTrim(0));
  say_graph("trimmed");
  SUCCEEDS(cudaStreamDestroy(stream));
}

}  // namespace victims
