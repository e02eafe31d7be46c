// A graph built node by node: parameters come back as they were given, edges are counted, and a
// launch does what the nodes say.
#include <cuda_runtime_api.h>

#include <cstring>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

constexpr size_t kBytes = 1024;

void say_is(const char* what, long long expected, long long is) {
  say_raw("graph", "\"what\":\"" + std::string(what) + "\",\"expected\":" +
                       std::to_string(expected) + ",\"is\":" + std::to_string(is));
}

void count_call(void* counter) {
  ++*static_cast<int*>(counter);
}

struct Nodes {
  cudaGraphNode_t in, set, out, host, record, empty;
};

Nodes build(cudaGraph_t graph, void* block, const unsigned char* from, unsigned char* to,
            int* calls, cudaEvent_t event) {
  Nodes nodes{};
  SUCCEEDS(cudaGraphAddMemcpyNode1D(&nodes.in, graph, nullptr, 0, block, from, kBytes,
                                    cudaMemcpyHostToDevice));
  cudaMemsetParams set{};
  set.dst = static_cast<char*>(block) + 16;
  set.value = 0x11;
  set.elementSize = 1;
  set.width = 32;
  set.height = 1;
  SUCCEEDS(cudaGraphAddMemsetNode(&nodes.set, graph, &nodes.in, 1, &set));
  SUCCEEDS(cudaGraphAddMemcpyNode1D(&nodes.out, graph, &nodes.set, 1, to, block, kBytes,
                                    cudaMemcpyDeviceToHost));
  cudaHostNodeParams host{};
  host.fn = count_call;
  host.userData = calls;
  SUCCEEDS(cudaGraphAddHostNode(&nodes.host, graph, &nodes.out, 1, &host));
  SUCCEEDS(cudaGraphAddEventRecordNode(&nodes.record, graph, &nodes.host, 1, event));
  const cudaGraphNode_t both[] = {nodes.record, nodes.out};
  SUCCEEDS(cudaGraphAddEmptyNode(&nodes.empty, graph, both, 2));
  return nodes;
}

void check_parameters(const Nodes& nodes, void* block, const unsigned char* from, int* calls,
                      cudaEvent_t event) {
  cudaMemcpy3DParms copy{};
  SUCCEEDS(cudaGraphMemcpyNodeGetParams(nodes.in, &copy));
  say_is("copy-width", kBytes, static_cast<long long>(copy.extent.width));
  say_is("copy-kind", cudaMemcpyHostToDevice, copy.kind);
  say_is("copy-addresses", 1, copy.srcPtr.ptr == from && copy.dstPtr.ptr == block);
  cudaMemsetParams set{};
  SUCCEEDS(cudaGraphMemsetNodeGetParams(nodes.set, &set));
  say_is("set-value", 0x11, set.value);
  say_is("set-width", 32, static_cast<long long>(set.width));
  set.value = 0x22;
  SUCCEEDS(cudaGraphMemsetNodeSetParams(nodes.set, &set));
  cudaHostNodeParams host{};
  SUCCEEDS(cudaGraphHostNodeGetParams(nodes.host, &host));
  say_is("host-function", 1, host.fn == count_call && host.userData == calls);
  cudaEvent_t recorded = nullptr;
  SUCCEEDS(cudaGraphEventRecordNodeGetEvent(nodes.record, &recorded));
  say_is("event", 1, recorded == event);
  cudaGraphNodeType type{};
  SUCCEEDS(cudaGraphNodeGetType(nodes.host, &type));
  say_is("type", cudaGraphNodeTypeHost, type);
}

size_t edge_count(cudaGraph_t graph) {
  size_t edges = 0;
#if CUDART_VERSION >= 13000
  SUCCEEDS(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
#else
  SUCCEEDS(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
#endif
  return edges;
}

}  // namespace

void graph_nodes() {
  VICTIM_FRAME;
  unsigned char from[kBytes];
  unsigned char to[kBytes] = {};
  for (size_t i = 0; i < kBytes; ++i) from[i] = static_cast<unsigned char>(i);
  int calls = 0;
  void* block = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  ALLOCATES(cudaMalloc(&block, kBytes), "device", block, kBytes);
  SUCCEEDS(cudaStreamCreate(&stream));
  SUCCEEDS(cudaEventCreate(&event));
  SUCCEEDS(cudaGraphCreate(&graph, 0));
  const Nodes nodes = build(graph, block, from, to, &calls, event);
  check_parameters(nodes, block, from, &calls, event);

  size_t count = 0;
  SUCCEEDS(cudaGraphGetNodes(graph, nullptr, &count));
  say_is("nodes", 6, static_cast<long long>(count));
  SUCCEEDS(cudaGraphGetRootNodes(graph, nullptr, &count));
  say_is("roots", 1, static_cast<long long>(count));
  say_is("edges", 6, static_cast<long long>(edge_count(graph)));

  cudaGraph_t clone = nullptr;
  cudaGraphNode_t twin = nullptr;
  SUCCEEDS(cudaGraphClone(&clone, graph));
  SUCCEEDS(cudaGraphNodeFindInClone(&twin, nodes.set, clone));
  say_is("twin-differs", 1, twin != nodes.set);
  SUCCEEDS(cudaGraphDestroy(clone));

  cudaGraphExec_t executable = nullptr;
  SUCCEEDS(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  SUCCEEDS(cudaGraphLaunch(executable, stream));
  SUCCEEDS(cudaGraphLaunch(executable, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  std::memset(from + 16, 0x22, 32);
  say_is("bytes", 1, std::memcmp(from, to, kBytes) == 0);
  say_is("host-calls", 2, calls);
  SUCCEEDS(cudaGraphExecDestroy(executable));
  SUCCEEDS(cudaGraphDestroy(graph));
  SUCCEEDS(cudaEventDestroy(event));
  SUCCEEDS(cudaStreamDestroy(stream));
  FREES(cudaFree(block), "device", block, kBytes);
}

}  // namespace victims
