// Graphs, their nodes, and stream capture.
//
// One lock guards all graphs and captures: they are built now and then and launched seldom, and
// captures join streams and graphs that separate locks would have to be taken for together.
#ifndef SIMGPU_DRIVER_GRAPH_H
#define SIMGPU_DRIVER_GRAPH_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "memory.h"

namespace simgpu {

struct Graph;

// The address range of an allocation node, shared by the graph, its clones and what is live.
struct GraphRange {
  std::uint64_t address = 0, size = 0;
  GraphRange(std::uint64_t at, std::uint64_t bytes) : address(at), size(bytes) {}
  GraphRange(const GraphRange&) = delete;
  GraphRange& operator=(const GraphRange&) = delete;
  ~GraphRange() { driver().addresses.give_back(address, size); }
};

// The physical memory behind the allocation nodes of an executable graph, graph_memory.cpp.
struct GraphMemory;

struct UserObject {
  void* object = nullptr;
  CUhostFn destroy = nullptr;
  std::uint64_t references = 0;
};

struct GraphNode {
  Graph* graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<GraphNode*> dependencies;
  std::vector<CUgraphEdgeData> edges;  // beside dependencies
  std::vector<GraphNode*> dependents;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::vector<unsigned char>> kernel_values;  // copies, where the sizes are known
  std::vector<void*> kernel_pointers;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
  CUDA_HOST_NODE_PARAMS host{};
  CUevent event = nullptr;
  Graph* child = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  Device* device = nullptr;  // of an allocation
  CUdeviceptr freed = 0;     // of a free node
  CUcontext context = nullptr;
  bool enabled = true;
  std::shared_ptr<GraphRange> range;
  GraphNode* original = nullptr;  // in a clone: which node this is
  std::map<int, CUkernelNodeAttrValue> attributes;
};

struct Graph {
  std::vector<GraphNode*> nodes;
  std::map<UserObject*, std::uint64_t> user_objects;
  bool is_child = false;  // owned by a node
  Graph* original = nullptr;
};

struct GraphExec {
  Graph* graph = nullptr;  // a clone of its own
  unsigned long long flags = 0;
  std::shared_ptr<GraphMemory> memory;
};

struct Capture {
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  bool external_graph = false;  // BeginCaptureToGraph
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const ThreadState* thread = nullptr;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  std::set<GraphNode*> added_by_update;  // may stay unjoined
  bool invalidated = false;
};

extern std::mutex g_graph_mutex;

GraphNode* new_node(Graph* graph, CUgraphNodeType type, const std::vector<GraphNode*>& after);
void keep_kernel_parameters(GraphNode* node);
void remove_node(GraphNode* node);  // with its edges
void destroy_graph(Graph* graph);
void release_user_object(UserObject* object, std::uint64_t count);
Graph* clone_graph(const Graph* graph);
// In an order in which every node follows its dependencies; empty where there is a cycle.
std::vector<GraphNode*> topological_order(const Graph* graph);
CUresult find_graph(CUgraph handle, Graph*& graph);
CUresult find_node(CUgraphNode handle, GraphNode*& node);
CUgraph handle_of(const Graph* graph);
CUgraphNode handle_of(const GraphNode* node);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_GRAPH_H
