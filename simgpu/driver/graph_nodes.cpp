// Adding nodes to graphs by hand, and asking and changing what they do.
#include <algorithm>
#include <cstdio>

#include "graph.h"
#include "tables.h"

namespace simgpu {
namespace {

// What an Add function gives: a graph, what comes before, and the handle to fill in.
struct Place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* before;
  std::size_t count;
};

// `fill` sees the node before anybody else does; where it fails the node is taken back.
template <class Fill>
CUresult add(const Place& place, CUgraphNodeType type, Fill fill) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(place.graph, graph));
  if (place.out == nullptr || (place.before == nullptr && place.count != 0))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> before;
  for (std::size_t i = 0; i < place.count; ++i) {
    GraphNode* node;
    SIMGPU_TRY(find_node(place.before[i], node));
    if (node->graph != graph || std::find(before.begin(), before.end(), node) != before.end())
      return CUDA_ERROR_INVALID_VALUE;
    before.push_back(node);
  }
  GraphNode* node = new_node(graph, type, before);
  if (node == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  node->context = current;
  CUresult result = fill(node);
  if (result != CUDA_SUCCESS) {
    remove_node(node);
    return result;
  }
  *place.out = handle_of(node);
  return CUDA_SUCCESS;
}

CUresult add_kernel(const Place& place, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS launch = *kernel;
  if (launch.func == nullptr) launch.func = reinterpret_cast<CUfunction>(launch.kern);
  if (driver().tables->functions.find(launch.func) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(place, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode* node) {
    node->kernel = launch;
    keep_kernel_parameters(node);
    return CUDA_SUCCESS;
  });
}

CUDA_KERNEL_NODE_PARAMS widened(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = old.func;
  kernel.gridDimX = old.gridDimX;
  kernel.gridDimY = old.gridDimY;
  kernel.gridDimZ = old.gridDimZ;
  kernel.blockDimX = old.blockDimX;
  kernel.blockDimY = old.blockDimY;
  kernel.blockDimZ = old.blockDimZ;
  kernel.sharedMemBytes = old.sharedMemBytes;
  kernel.kernelParams = old.kernelParams;
  kernel.extra = old.extra;
  return kernel;
}

CUresult add_copy(const Place& place, const CUDA_MEMCPY3D& copy, CUcontext context) {
  return add(place, CU_GRAPH_NODE_TYPE_MEMCPY, [&](GraphNode* node) {
    node->copy = copy;
    if (context != nullptr) node->context = context;
    return CUDA_SUCCESS;
  });
}

CUresult add_set(const Place& place, const CUDA_MEMSET_NODE_PARAMS& set, CUcontext context) {
  return add(place, CU_GRAPH_NODE_TYPE_MEMSET, [&](GraphNode* node) {
    node->set = set;
    if (context != nullptr) node->context = context;
    return CUDA_SUCCESS;
  });
}

CUresult add_host(const Place& place, const CUDA_HOST_NODE_PARAMS& host) {
  if (host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(place, CU_GRAPH_NODE_TYPE_HOST, [&](GraphNode* node) {
    node->host = host;
    return CUDA_SUCCESS;
  });
}

CUresult add_child(const Place& place, CUgraph child_handle) {
  return add(place, CU_GRAPH_NODE_TYPE_GRAPH, [&](GraphNode* node) {
    Graph* child;
    SIMGPU_TRY(find_graph(child_handle, child));
    node->child = clone_graph(child);
    if (node->child == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    node->child->is_child = true;
    return CUDA_SUCCESS;
  });
}

CUresult add_event(const Place& place, CUgraphNodeType type, CUevent event) {
  if (driver().events.find(event) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(place, type, [&](GraphNode* node) {
    node->event = event;
    return CUDA_SUCCESS;
  });
}

CUresult add_allocation(const Place& place, const CUmemPoolProps& properties, std::size_t size,
                        CUdeviceptr& address) {
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE || size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Device* device;
  SIMGPU_TRY(find_device(properties.location.id, device));
  return add(place, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](GraphNode* node) {
    SIMGPU_TRY(reserve_allocation_node(node, device, size));
    node->allocation.poolProps = properties;
    address = node->allocation.dptr;
    return CUDA_SUCCESS;
  });
}

CUresult add_free(const Place& place, CUdeviceptr pointer) {
  return add(place, CU_GRAPH_NODE_TYPE_MEM_FREE, [&](GraphNode* node) {
    node->freed = pointer;
    return CUDA_SUCCESS;
  });
}

CUDA_MEMSET_NODE_PARAMS without_context(const CUDA_MEMSET_NODE_PARAMS_v2& set) {
  return {.dst = set.dst,
          .pitch = set.pitch,
          .value = set.value,
          .elementSize = set.elementSize,
          .width = set.width,
          .height = set.height};
}

CUresult add_any(const Place& place, CUgraphNodeParams* what) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (what->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      static_assert(sizeof kernel == sizeof what->kernel);
      kernel.func = what->kernel.func;
      kernel.gridDimX = what->kernel.gridDimX;
      kernel.gridDimY = what->kernel.gridDimY;
      kernel.gridDimZ = what->kernel.gridDimZ;
      kernel.blockDimX = what->kernel.blockDimX;
      kernel.blockDimY = what->kernel.blockDimY;
      kernel.blockDimZ = what->kernel.blockDimZ;
      kernel.sharedMemBytes = what->kernel.sharedMemBytes;
      kernel.kernelParams = what->kernel.kernelParams;
      kernel.extra = what->kernel.extra;
      kernel.kern = what->kernel.kern;
      kernel.ctx = what->kernel.ctx;
      return add_kernel(place, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return add_copy(place, what->memcpy.copyParams, what->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return add_set(place, without_context(what->memset), what->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
      return add_host(place, {what->host.fn, what->host.userData});
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return add_child(place, what->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return add(place, what->type, [](GraphNode*) { return CUDA_SUCCESS; });
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return add_event(place, what->type, what->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return add_event(place, what->type, what->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return add_allocation(place, what->alloc.poolProps, what->alloc.bytesize, what->alloc.dptr);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return add_free(place, what->free.dptr);
    default:
      return static_cast<CUresult>(simgpu_not_simulated("this type of graph node"));
  }
}

// A node of the wanted type, under the lock that the caller holds.
CUresult find_typed(CUgraphNode handle, CUgraphNodeType type, GraphNode*& node) {
  SIMGPU_TRY(find_node(handle, node));
  return node->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Out, class Get>
CUresult get(CUgraphNode handle, CUgraphNodeType type, Out* out, Get read) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_typed(handle, type, node));
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = read(node);
  return CUDA_SUCCESS;
}

template <class In, class Set>
CUresult set(CUgraphNode handle, CUgraphNodeType type, const In* in, Set write) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* node;
  SIMGPU_TRY(find_typed(handle, type, node));
  if (in == nullptr) return CUDA_ERROR_INVALID_VALUE;
  write(node, *in);
  return CUDA_SUCCESS;
}

const char* type_name(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "memset";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "graph";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "wait";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "record";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "alloc";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "free";
    default:
      return "empty";
  }
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* what) {
  return add_any({out, graph, before, count}, what);
}
CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, size_t count,
                        CUgraphNodeParams* what) {
  return add_any({out, graph, before, count}, what);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  return add_kernel({out, graph, before, count}, kernel);
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide = widened(*kernel);
  return add_kernel({out, graph, before, count}, &wide);
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMCPY3D* copy, CUcontext context) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_copy({out, graph, before, count}, *copy, context);
}
CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* what,
                              CUcontext context) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_set({out, graph, before, count}, *what, context);
}
CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                            size_t count, const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_host({out, graph, before, count}, *host);
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                  size_t count, CUgraph child) {
  return add_child({out, graph, before, count}, child);
}
CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                             size_t count) {
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_EMPTY,
             [](GraphNode*) { return CUDA_SUCCESS; });
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                   size_t count, CUevent event) {
  return add_event({out, graph, before, count}, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                 size_t count, CUevent event) {
  return add_event({out, graph, before, count}, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  if (what == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_allocation({out, graph, before, count}, what->poolProps, what->bytesize, what->dptr);
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                               size_t count, CUdeviceptr pointer) {
  return add_free({out, graph, before, count}, pointer);
}

// ---- asking and changing

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* kernel) {
  return get(node, CU_GRAPH_NODE_TYPE_KERNEL, kernel,
             [](const GraphNode* found) { return found->kernel; });
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  return set(node, CU_GRAPH_NODE_TYPE_KERNEL, kernel, [](GraphNode* found, const auto& given) {
    found->kernel = given;
    keep_kernel_parameters(found);
  });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  return get(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy,
             [](const GraphNode* found) { return found->copy; });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return set(node, CU_GRAPH_NODE_TYPE_MEMCPY, copy,
             [](GraphNode* found, const auto& given) { found->copy = given; });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* what) {
  return get(node, CU_GRAPH_NODE_TYPE_MEMSET, what,
             [](const GraphNode* found) { return found->set; });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* what) {
  return set(node, CU_GRAPH_NODE_TYPE_MEMSET, what,
             [](GraphNode* found, const auto& given) { found->set = given; });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) {
  return get(node, CU_GRAPH_NODE_TYPE_HOST, host,
             [](const GraphNode* found) { return found->host; });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return set(node, CU_GRAPH_NODE_TYPE_HOST, host,
             [](GraphNode* found, const auto& given) { found->host = given; });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  return get(node, CU_GRAPH_NODE_TYPE_GRAPH, child,
             [](const GraphNode* found) { return handle_of(found->child); });
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event,
             [](const GraphNode* found) { return found->event; });
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event,
             [](const GraphNode* found) { return found->event; });
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event,
             [](GraphNode* found, CUevent given) { found->event = given; });
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event,
             [](GraphNode* found, CUevent given) { found->event = given; });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* what) {
  return get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, what,
             [](const GraphNode* found) { return found->allocation; });
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* pointer) {
  return get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, pointer,
             [](const GraphNode* found) { return found->freed; });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue* value) {
  return set(node, CU_GRAPH_NODE_TYPE_KERNEL, value,
             [&](GraphNode* found, const auto& given) { found->attributes[attribute] = given; });
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue* value) {
  return get(node, CU_GRAPH_NODE_TYPE_KERNEL, value, [&](const GraphNode* found) {
    auto known = found->attributes.find(attribute);
    return known == found->attributes.end() ? CUkernelNodeAttrValue{} : known->second;
  });
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* source;
  GraphNode* target;
  SIMGPU_TRY(find_typed(from, CU_GRAPH_NODE_TYPE_KERNEL, source));
  SIMGPU_TRY(find_typed(to, CU_GRAPH_NODE_TYPE_KERNEL, target));
  target->attributes = source->attributes;
  return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(handle, graph));
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "we");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph simgpu {\n");
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const GraphNode* node = graph->nodes[i];
    std::fprintf(file, "  n%zu [label=\"%s\"];\n", i, type_name(node->type));
    for (const GraphNode* before : node->dependencies) {
      auto found = std::find(graph->nodes.begin(), graph->nodes.end(), before);
      std::fprintf(file, "  n%td -> n%zu;\n", found - graph->nodes.begin(), i);
    }
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return CUDA_SUCCESS;
}
