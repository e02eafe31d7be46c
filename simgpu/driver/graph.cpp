// Graphs as data: nodes, edges, clones.
#include "graph.h"

#include <algorithm>
#include <cstring>

#include "tables.h"

namespace simgpu {

std::mutex g_graph_mutex;

CUgraph handle_of(const Graph* graph) {
  return driver().tables->graphs.handle(graph);
}
CUgraphNode handle_of(const GraphNode* node) {
  return driver().tables->nodes.handle(node);
}

CUresult find_graph(CUgraph handle, Graph*& graph) {
  SIMGPU_TRY(require_init());
  graph = driver().tables->graphs.find(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult find_node(CUgraphNode handle, GraphNode*& node) {
  SIMGPU_TRY(require_init());
  node = driver().tables->nodes.find(handle);
  return node == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

GraphNode* new_node(Graph* graph, CUgraphNodeType type, const std::vector<GraphNode*>& after) {
  GraphNode* node = driver().tables->nodes.create();
  if (node == nullptr) return nullptr;
  node->graph = graph;
  node->type = type;
  node->dependencies = after;
  node->edges.resize(after.size());
  for (GraphNode* before : after) before->dependents.push_back(node);
  graph->nodes.push_back(node);
  return node;
}

namespace {

// Where the buffer form of a launch keeps its parameters; nullptr where it is not used.
const unsigned char* parameter_buffer(void** extra) {
  if (extra == nullptr) return nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      return static_cast<const unsigned char*>(extra[1]);
  return nullptr;
}

}  // namespace

// The values that kernelParams or extra point to are the caller's only until it returns.
void keep_kernel_parameters(GraphNode* node) {
  Function* function = driver().tables->functions.find(node->kernel.func);
  void** values = node->kernel.kernelParams;
  const unsigned char* buffer = parameter_buffer(node->kernel.extra);
  node->kernel_values.clear();
  node->kernel_pointers.clear();
  node->kernel.kernelParams = nullptr;
  node->kernel.extra = nullptr;
  if (function == nullptr || (values == nullptr && buffer == nullptr)) return;
  const std::vector<KernelParameter>* parameters = parameters_of(function);
  if (parameters == nullptr) return;
  for (std::size_t i = 0; i < parameters->size(); ++i) {
    const KernelParameter& parameter = (*parameters)[i];
    const auto* bytes = values != nullptr ? static_cast<const unsigned char*>(values[i])
                                          : buffer + parameter.offset;
    node->kernel_values.emplace_back(bytes, bytes + parameter.size);
  }
  for (auto& value : node->kernel_values) node->kernel_pointers.push_back(value.data());
  node->kernel.kernelParams = node->kernel_pointers.data();
}

namespace {

void destroy_node(GraphNode* node) {
  if (node->child != nullptr) destroy_graph(node->child);
  driver().tables->nodes.destroy(node);
}

void unlink(GraphNode* node) {
  for (GraphNode* before : node->dependencies) std::erase(before->dependents, node);
  for (GraphNode* after : node->dependents)
    for (std::size_t i = after->dependencies.size(); i-- > 0;)
      if (after->dependencies[i] == node) {
        after->dependencies.erase(after->dependencies.begin() + static_cast<std::ptrdiff_t>(i));
        after->edges.erase(after->edges.begin() + static_cast<std::ptrdiff_t>(i));
      }
}

}  // namespace

void remove_node(GraphNode* node) {
  unlink(node);
  std::erase(node->graph->nodes, node);
  destroy_node(node);
}

void destroy_graph(Graph* graph) {
  for (GraphNode* node : graph->nodes) destroy_node(node);
  for (auto [object, count] : graph->user_objects) release_user_object(object, count);
  driver().tables->graphs.destroy(graph);
}

Graph* clone_graph(const Graph* graph) {
  Graph* copy = driver().tables->graphs.create();
  if (copy == nullptr) return nullptr;
  copy->original = const_cast<Graph*>(graph);
  std::map<const GraphNode*, GraphNode*> clones;
  for (const GraphNode* node : graph->nodes) {
    GraphNode* clone = new_node(copy, node->type, {});
    if (clone == nullptr) return nullptr;
    clone->kernel = node->kernel;
    clone->kernel_values = node->kernel_values;
    for (auto& value : clone->kernel_values) clone->kernel_pointers.push_back(value.data());
    clone->kernel.kernelParams =
        clone->kernel_pointers.empty() ? nullptr : clone->kernel_pointers.data();
    clone->copy = node->copy;
    clone->set = node->set;
    clone->host = node->host;
    clone->event = node->event;
    clone->allocation = node->allocation;
    clone->range = node->range;
    clone->device = node->device;
    clone->freed = node->freed;
    clone->context = node->context;
    clone->enabled = node->enabled;
    clone->attributes = node->attributes;
    clone->original = const_cast<GraphNode*>(node);
    if (node->child != nullptr) {
      clone->child = clone_graph(node->child);
      if (clone->child != nullptr) clone->child->is_child = true;
    }
    clones[node] = clone;
  }
  for (const GraphNode* node : graph->nodes) {
    GraphNode* clone = clones[node];
    for (GraphNode* before : node->dependencies) {
      clone->dependencies.push_back(clones[before]);
      clones[before]->dependents.push_back(clone);
    }
    clone->edges = node->edges;
  }
  for (auto [object, count] : graph->user_objects) {
    copy->user_objects[object] = count;
    object->references += count;
  }
  return copy;
}

std::vector<GraphNode*> topological_order(const Graph* graph) {
  std::map<GraphNode*, std::size_t> waiting;
  std::vector<GraphNode*> order;
  for (GraphNode* node : graph->nodes) {
    waiting[node] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (GraphNode* after : order[i]->dependents)
      if (--waiting[after] == 0) order.push_back(after);
  if (order.size() != graph->nodes.size()) order.clear();
  return order;
}

namespace {

// Fills a caller's array as the API does: all of them counted, at most `*count` written, and the
// rest of the array set to zero.
template <class Handle>
void hand_out(const std::vector<Handle>& found, Handle* out, size_t* count) {
  if (out != nullptr)
    for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : Handle{};
  *count = found.size();
}

CUresult nodes_from(const CUgraphNode* handles, std::size_t count, const Graph* graph,
                    std::vector<GraphNode*>& nodes) {
  if (handles == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* node;
    SIMGPU_TRY(find_node(handles[i], node));
    if (graph != nullptr && node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back(node);
  }
  return CUDA_SUCCESS;
}

struct Edges {
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
  void add(const GraphNode* before, const GraphNode* after, const CUgraphEdgeData& edge) {
    from.push_back(handle_of(before));
    to.push_back(handle_of(after));
    data.push_back(edge);
  }
};

Edges edges_into(const GraphNode* node) {
  Edges edges;
  for (std::size_t i = 0; i < node->dependencies.size(); ++i)
    edges.add(node->dependencies[i], node, node->edges[i]);
  return edges;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuGraphCreate(CUgraph* handle, unsigned int flags) {
  SIMGPU_TRY(require_init());
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(g_graph_mutex);
  Graph* graph = driver().tables->graphs.create();
  if (graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = handle_of(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  if (graph->is_child) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* handle, CUgraph original) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(original, graph));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const GraphNode* node : graph->nodes)
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      return CUDA_ERROR_NOT_SUPPORTED;  // graphs that own memory cannot be cloned
  Graph* copy = clone_graph(graph);
  if (copy == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = handle_of(copy);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* handle, CUgraphNode original, CUgraph clone) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(clone, graph));
  GraphNode* wanted;
  SIMGPU_TRY(find_node(original, wanted));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const GraphNode* node : graph->nodes)
    if (node->original == wanted) {
      *handle = handle_of(node);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_node(handle, node));
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> found;
  for (const GraphNode* node : graph->nodes) found.push_back(handle_of(node));
  hand_out(found, nodes, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> found;
  for (const GraphNode* node : graph->nodes)
    if (node->dependencies.empty()) found.push_back(handle_of(node));
  hand_out(found, nodes, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Edges all;
  for (const GraphNode* node : graph->nodes)
    for (std::size_t i = 0; i < node->dependencies.size(); ++i)
      all.add(node->dependencies[i], node, node->edges[i]);
  size_t room = *count;
  hand_out(all.from, from, count);
  *count = room;
  hand_out(all.data, data, count);
  *count = room;
  hand_out(all.to, to, count);
  return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes,
                                       CUgraphEdgeData* data, size_t* count) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_node(handle, node));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Edges edges = edges_into(node);
  size_t room = *count;
  hand_out(edges.data, data, count);
  *count = room;
  hand_out(edges.from, nodes, count);
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, size_t* count) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_node(handle, node));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> found;
  for (const GraphNode* after : node->dependents) found.push_back(handle_of(after));
  size_t room = *count;
  hand_out(std::vector<CUgraphEdgeData>(found.size()), data, count);
  *count = room;
  hand_out(found, nodes, count);
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  std::vector<GraphNode*> before, after;
  SIMGPU_TRY(nodes_from(from, count, graph, before));
  SIMGPU_TRY(nodes_from(to, count, graph, after));
  for (size_t i = 0; i < count; ++i) {
    auto& known = after[i]->dependencies;
    if (before[i] == after[i] || std::find(known.begin(), known.end(), before[i]) != known.end())
      return CUDA_ERROR_INVALID_VALUE;
    known.push_back(before[i]);
    after[i]->edges.push_back(data == nullptr ? CUgraphEdgeData{} : data[i]);
    before[i]->dependents.push_back(after[i]);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData*, size_t count) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  std::vector<GraphNode*> before, after;
  SIMGPU_TRY(nodes_from(from, count, graph, before));
  SIMGPU_TRY(nodes_from(to, count, graph, after));
  for (size_t i = 0; i < count; ++i) {
    auto& known = after[i]->dependencies;
    auto found = std::find(known.begin(), known.end(), before[i]);
    if (found == known.end()) return CUDA_ERROR_INVALID_VALUE;
    after[i]->edges.erase(after[i]->edges.begin() + (found - known.begin()));
    known.erase(found);
    std::erase(before[i]->dependents, after[i]);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_node(handle, node));
  if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_NOT_SUPPORTED;  // nodes that own memory stay
  remove_node(node);
  return CUDA_SUCCESS;
}
