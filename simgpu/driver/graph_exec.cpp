// Executable graphs. A launch does, in topological order, what copies, sets, memory nodes, events
// and host functions do; kernels do nothing.
#include "activity.h"
#include "graph.h"
#include "kernels/effects.h"
#include "tables.h"

namespace simgpu {
namespace {

CUresult find_exec(CUgraphExec handle, GraphExec*& exec) {
  SIMGPU_TRY(require_init());
  exec = driver().tables->execs.find(handle);
  return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags) {
  std::lock_guard lock(g_graph_mutex);
  Graph* graph;
  SIMGPU_TRY(find_graph(graph_handle, graph));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (!graph->nodes.empty() && topological_order(graph).empty()) return CUDA_ERROR_INVALID_VALUE;
  GraphExec* exec = driver().tables->execs.create();
  if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->graph = clone_graph(graph);
  if (exec->graph == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  exec->flags = flags;
  exec->memory = new_graph_memory();
  *handle = driver().tables->execs.handle(exec);
  return CUDA_SUCCESS;
}

// Parameters are known where the kernel's image says how large they are.
void run_kernel(const GraphNode* node, const Stream* stream) {
  driver().contents.launched();
  const Function* function = driver().tables->functions.find(node->kernel.func);
  if (function != nullptr)
    tell_kernel(stream, function->name.c_str(), node->kernel, registers_per_thread(function),
                reinterpret_cast<std::uint64_t>(node));
  if (function != nullptr && node->kernel.kernelParams != nullptr)
    apply_launch_effects(function->name.c_str(), node->kernel.kernelParams);
}

CUresult run(const std::shared_ptr<GraphMemory>& memory, const std::vector<GraphNode*>& order,
             Stream* stream) {
  for (const GraphNode* node : order) {
    if (!node->enabled) continue;
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        run_kernel(node, stream);
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        SIMGPU_TRY(copy_box(node->copy));
        tell_copy(stream, node->copy.dstDevice, node->copy.srcDevice,
                  node->copy.WidthInBytes * node->copy.Height * node->copy.Depth,
                  reinterpret_cast<std::uint64_t>(node));
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        SIMGPU_TRY(set_box(node->set));
        tell_set(stream, node->set.dst, node->set.elementSize * node->set.width * node->set.height,
                 node->set.value, reinterpret_cast<std::uint64_t>(node));
        break;
      case CU_GRAPH_NODE_TYPE_HOST:
        enqueue_host_function(stream, [host = node->host] { host.fn(host.userData); });
        break;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        SIMGPU_TRY(run(memory, topological_order(node->child), stream));
        break;
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
        Event* event;
        SIMGPU_TRY(find_event(node->event, event));
        record_event(event, stream);
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        SIMGPU_TRY(allocate_graph_node(memory, node));
        break;
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        SIMGPU_TRY(free_graph_node(node));
        break;
      default:
        break;  // empty nodes and waits: done as soon as they are reached
    }
  }
  return CUDA_SUCCESS;
}

GraphNode* counterpart(const GraphExec* exec, const GraphNode* node) {
  for (GraphNode* own : exec->graph->nodes)
    if (own->original == node) return own;
  return nullptr;
}

// The node of an executable graph that stands for a node of its template.
CUresult find_exec_node(CUgraphExec exec_handle, CUgraphNode handle, GraphNode*& own) {
  GraphExec* exec;
  SIMGPU_TRY(find_exec(exec_handle, exec));
  GraphNode* node;
  SIMGPU_TRY(find_node(handle, node));
  own = counterpart(exec, node);
  return own == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// The same shape: types and dependencies in the order of the nodes.
const GraphNode* first_difference(const Graph* a, const Graph* b) {
  for (std::size_t i = 0; i < b->nodes.size(); ++i) {
    if (i >= a->nodes.size() || a->nodes[i]->type != b->nodes[i]->type ||
        a->nodes[i]->dependencies.size() != b->nodes[i]->dependencies.size())
      return b->nodes[i];
  }
  return nullptr;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t log_size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_size > 0) *log = 0;
  return instantiate(exec, graph, 0);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t log_size) {
  return cuGraphInstantiate(exec, graph, error_node, log, log_size);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = instantiate(exec, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  std::lock_guard lock(g_graph_mutex);
  GraphExec* exec;
  SIMGPU_TRY(find_exec(handle, exec));
  end_graph_memory(exec->memory.get());
  destroy_graph(exec->graph);
  driver().tables->execs.destroy(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  std::lock_guard lock(g_graph_mutex);
  GraphExec* exec;
  SIMGPU_TRY(find_exec(handle, exec));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream) {
  std::lock_guard lock(g_graph_mutex);
  GraphExec* exec;
  SIMGPU_TRY(find_exec(handle, exec));
  return hold_graph_memory(exec->memory.get(), topological_order(exec->graph), true);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return told("cuGraphLaunch", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    Stream* stream;
    SIMGPU_TRY(stream_for_work(stream_handle, context, stream));
    if (stream->capture.load(std::memory_order_acquire) != nullptr) {
      Graph* graph;
      {
        std::lock_guard lock(g_graph_mutex);
        GraphExec* exec;
        SIMGPU_TRY(find_exec(handle, exec));
        graph = exec->graph;
      }
      return capture_child(stream, graph);
    }
    std::lock_guard lock(g_graph_mutex);
    GraphExec* exec;
    SIMGPU_TRY(find_exec(handle, exec));
    std::vector<GraphNode*> order = topological_order(exec->graph);
    bool free_first = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    SIMGPU_TRY(hold_graph_memory(exec->memory.get(), order, free_first));
    return run(exec->memory, order, stream);
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                              CUgraphExecUpdateResultInfo* info) {
  std::lock_guard lock(g_graph_mutex);
  GraphExec* exec;
  SIMGPU_TRY(find_exec(handle, exec));
  Graph* graph;
  SIMGPU_TRY(find_graph(graph_handle, graph));
  const GraphNode* different = first_difference(exec->graph, graph);
  bool same = different == nullptr && exec->graph->nodes.size() == graph->nodes.size();
  if (info != nullptr) {
    *info = {};
    info->result =
        same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    info->errorNode = different == nullptr ? nullptr : handle_of(different);
  }
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  Graph* updated = clone_graph(graph);
  if (updated == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  destroy_graph(exec->graph);
  exec->graph = updated;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  CUresult status = cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return status;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  own->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = own->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  if (parameters == nullptr || own->type != CU_GRAPH_NODE_TYPE_KERNEL)
    return CUDA_ERROR_INVALID_VALUE;
  own->kernel = *parameters;
  keep_kernel_parameters(own);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* copy, CUcontext) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  if (copy == nullptr || own->type != CU_GRAPH_NODE_TYPE_MEMCPY) return CUDA_ERROR_INVALID_VALUE;
  own->copy = *copy;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  if (set == nullptr || own->type != CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  own->set = *set;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* host) {
  std::lock_guard lock(g_graph_mutex);
  GraphNode* own;
  SIMGPU_TRY(find_exec_node(exec, node, own));
  if (host == nullptr || own->type != CU_GRAPH_NODE_TYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
  own->host = *host;
  return CUDA_SUCCESS;
}
