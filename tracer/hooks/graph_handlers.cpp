// Graphs: their memory nodes, the memory that their launches make the driver keep, and what they
// do.
#include "hooks/capture.h"
#include "hooks/devices.h"
#include "hooks/graph_kernels.h"
#include "hooks/handlers.h"
#include "hooks/pools.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

// Also what an executable graph becomes by an update.
void instantiated(const Call& call, CUresult result, CUgraph graph, const CUgraphExec* exec) {
  if (result != CUDA_SUCCESS || exec == nullptr) return;
  Event event{.kind = EventKind::graph_instantiate,
              .device = current_device(),
              .object = reinterpret_cast<uint64_t>(*exec)};
  emit(call, event);
  if (config().accesses) record_graph_work(graph, *exec);
}

// A node has an address now, and memory when its graph is launched.
void added(const Call& call, const CUmemPoolProps& pool, CUdeviceptr pointer, size_t bytes) {
  expect_graph_memory();
  Event event{.kind = EventKind::physical_alloc,
              .memory = Memory::graph,
              .device = static_cast<int16_t>(pool.location.id),
              .address = pointer,
              .size = bytes,
              .flags = kEventCaptured};
  emit(call, event);
}

#if CUDA_VERSION >= 12030
void added_if_memory(const Call& call, const CUgraphNodeParams& node) {
  if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    added(call, node.alloc.poolProps, node.alloc.dptr, node.alloc.bytesize);
}
#endif

}  // namespace

CUresult graph_add_mem_alloc_node(const Call& call,
                                  CUresult (*real)(CUgraphNode*, CUgraph, const CUgraphNode*,
                                                   size_t, CUDA_MEM_ALLOC_NODE_PARAMS*),
                                  CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  const CUresult result = real(node, graph, dependencies, count, parameters);
  if (result != CUDA_SUCCESS || parameters == nullptr) return result;
  added(call, parameters->poolProps, parameters->dptr, parameters->bytesize);
  return result;
}

#if CUDA_VERSION >= 12030
CUresult graph_add_node(const Call& call,
                        CUresult (*real)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t,
                                         CUgraphNodeParams*),
                        CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters) {
  const CUresult result = real(node, graph, dependencies, count, parameters);
  if (result == CUDA_SUCCESS && parameters != nullptr) added_if_memory(call, *parameters);
  return result;
}

CUresult graph_add_node_v2(const Call& call,
                           CUresult (*real)(CUgraphNode*, CUgraph, const CUgraphNode*,
                                            const CUgraphEdgeData*, size_t, CUgraphNodeParams*),
                           CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count,
                           CUgraphNodeParams* parameters) {
  const CUresult result = real(node, graph, dependencies, edges, count, parameters);
  if (result == CUDA_SUCCESS && parameters != nullptr) added_if_memory(call, *parameters);
  return result;
}
#endif

CUresult graph_instantiate(const Call& call,
                           CUresult (*real)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t),
                           CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                           size_t log_bytes) {
  const CUresult result = real(exec, graph, error_node, log, log_bytes);
  instantiated(call, result, graph, exec);
  return result;
}

CUresult graph_instantiate_with_flags(const Call& call,
                                      CUresult (*real)(CUgraphExec*, CUgraph, unsigned long long),
                                      CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  const CUresult result = real(exec, graph, flags);
  instantiated(call, result, graph, exec);
  return result;
}

CUresult graph_instantiate_with_params(
    const Call& call, CUresult (*real)(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*),
    CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  const CUresult result = real(exec, graph, parameters);
  instantiated(call, result, graph, exec);
  return result;
}

CUresult graph_exec_destroy(const Call& call, CUresult (*real)(CUgraphExec), CUgraphExec exec) {
  const CUresult result = real(exec);
  if (result != CUDA_SUCCESS) return result;
  Event event{.kind = EventKind::graph_exec_destroy, .object = reinterpret_cast<uint64_t>(exec)};
  emit(call, event);
  update_graph_memory(call, current_device());
  return result;
}

CUresult graph_launch(const Call& call, CUresult (*real)(CUgraphExec, CUstream), CUgraphExec exec,
                      CUstream stream) {
  const CUresult result = real(exec, stream);
  if (result != CUDA_SUCCESS) return result;
  if (config().accesses && !is_captured(stream)) {
    Event event{.kind = EventKind::graph_launch,
                .stream = reinterpret_cast<uint64_t>(stream),
                .object = reinterpret_cast<uint64_t>(exec)};
    record(event);
  }
  update_graph_memory(call, current_device());
  return result;
}

CUresult graph_exec_update(const Call& call,
                           CUresult (*real)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*),
                           CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const CUresult result = real(exec, graph, info);
  if (config().accesses) instantiated(call, result, graph, &exec);
  return result;
}

CUresult device_graph_mem_trim(const Call& call, CUresult (*real)(CUdevice), CUdevice device) {
  const CUresult result = real(device);
  if (result == CUDA_SUCCESS) update_graph_memory(call, static_cast<int16_t>(device));
  return result;
}

}  // namespace vramtrack
