// Graph nodes of each type: adding, reading, changing, in a graph and in an executable one.
#include "runtime/call.h"
#include "runtime/copy_params.h"
#include "runtime/graph_params.h"
#include "runtime/registry.h"

using namespace simgpu;

namespace {

cudaError_t enter(CUcontext* context) {
  const cudaError_t error = enter_context();
  return error != cudaSuccess ? error : call(&DriverTable::CtxGetCurrent, context);
}

// A copy along one line as a box.
cudaMemcpy3DParms line(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<void*>(from), count, count, 1};
  copy.dstPtr = {to, count, count, 1};
  copy.extent = {count, 1, 1};
  copy.kind = kind;
  return copy;
}

cudaError_t symbol_at(const void* symbol, size_t offset, size_t count, void** address) {
  void* base = nullptr;
  size_t size = 0;
  const cudaError_t error = enter_context();
  const cudaError_t found = error != cudaSuccess ? error : find_variable(symbol, &base, &size);
  if (found != cudaSuccess) return found;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  *address = static_cast<char*>(base) + offset;
  return cudaSuccess;
}

}  // namespace

// ---- kernels

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                   const cudaKernelNodeParams* pNodeParams) {
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  CUcontext context = nullptr;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*pNodeParams, &params);
  if (error == cudaSuccess) {
    params.ctx = context;
    error = call(&DriverTable::GraphAddKernelNode, pGraphNode, graph, pDependencies,
                 numDependencies, &params);
  }
  return record(error);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* pNodeParams) {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  const cudaError_t error = in_context(&DriverTable::GraphKernelNodeGetParams, node, &params);
  if (error == cudaSuccess) *pNodeParams = to_runtime(params);
  return error;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const cudaKernelNodeParams* pNodeParams) {
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*pNodeParams, &params);
  if (error == cudaSuccess) error = call(&DriverTable::GraphKernelNodeSetParams, node, &params);
  return record(error);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* pNodeParams) {
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*pNodeParams, &params);
  if (error == cudaSuccess) {
    error = call(&DriverTable::GraphExecKernelNodeSetParams, hGraphExec, node, &params);
  }
  return record(error);
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc) {
  return in_context(&DriverTable::GraphKernelNodeCopyAttributes, hDst, hSrc);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            cudaLaunchAttributeValue* value_out) {
  return in_context(&DriverTable::GraphKernelNodeGetAttribute, hNode, attr, value_out);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            const cudaLaunchAttributeValue* value) {
  return in_context(&DriverTable::GraphKernelNodeSetAttribute, hNode, attr, value);
}

// ---- copies

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                   const cudaMemcpy3DParms* pCopyParams) {
  CUDA_MEMCPY3D copy;
  CUcontext context = nullptr;
  cudaError_t error = pCopyParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*pCopyParams, &copy);
  if (error == cudaSuccess) {
    error = call(&DriverTable::GraphAddMemcpyNode, pGraphNode, graph, pDependencies,
                 numDependencies, &copy, context);
  }
  return record(error);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                     void* dst, const void* src, size_t count,
                                     cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(dst, src, count, kind);
  return cudaGraphAddMemcpyNode(pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t* pDependencies,
                                           size_t numDependencies, const void* symbol,
                                           const void* src, size_t count, size_t offset,
                                           cudaMemcpyKind kind) {
  void* to = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &to);
  return error != cudaSuccess ? record(error)
                              : cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies,
                                                         numDependencies, to, src, count, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t* pDependencies,
                                             size_t numDependencies, void* dst, const void* symbol,
                                             size_t count, size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &from);
  return error != cudaSuccess ? record(error)
                              : cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies,
                                                         numDependencies, dst, from, count, kind);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* pNodeParams) {
  CUDA_MEMCPY3D copy{};
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  const cudaError_t error = in_context(&DriverTable::GraphMemcpyNodeGetParams, node, &copy);
  if (error == cudaSuccess) *pNodeParams = to_runtime(copy);
  return error;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const cudaMemcpy3DParms* pNodeParams) {
  CUDA_MEMCPY3D copy;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*pNodeParams, &copy);
  if (error == cudaSuccess) error = call(&DriverTable::GraphMemcpyNodeSetParams, node, &copy);
  return record(error);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src,
                                           size_t count, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(dst, src, count, kind);
  return cudaGraphMemcpyNodeSetParams(node, &copy);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* src, size_t count, size_t offset,
                                                 cudaMemcpyKind kind) {
  void* to = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &to);
  return error != cudaSuccess ? record(error)
                              : cudaGraphMemcpyNodeSetParams1D(node, to, src, count, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst,
                                                   const void* symbol, size_t count, size_t offset,
                                                   cudaMemcpyKind kind) {
  void* from = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &from);
  return error != cudaSuccess ? record(error)
                              : cudaGraphMemcpyNodeSetParams1D(node, dst, from, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* pNodeParams) {
  CUDA_MEMCPY3D copy;
  CUcontext context = nullptr;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*pNodeParams, &copy);
  if (error == cudaSuccess) {
    error = call(&DriverTable::GraphExecMemcpyNodeSetParams, hGraphExec, node, &copy, context);
  }
  return record(error);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                               void* dst, const void* src, size_t count,
                                               cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = line(dst, src, count, kind);
  return cudaGraphExecMemcpyNodeSetParams(hGraphExec, node, &copy);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec,
                                                     cudaGraphNode_t node, const void* symbol,
                                                     const void* src, size_t count, size_t offset,
                                                     cudaMemcpyKind kind) {
  void* to = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &to);
  return error != cudaSuccess
             ? record(error)
             : cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, to, src, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec,
                                                       cudaGraphNode_t node, void* dst,
                                                       const void* symbol, size_t count,
                                                       size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  const cudaError_t error = symbol_at(symbol, offset, count, &from);
  return error != cudaSuccess
             ? record(error)
             : cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, dst, from, count, kind);
}

// ---- sets

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                   const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                   const cudaMemsetParams* pMemsetParams) {
  CUcontext context = nullptr;
  cudaError_t error = pMemsetParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) {
    const CUDA_MEMSET_NODE_PARAMS_v1 params = to_driver(*pMemsetParams);
    error = call(&DriverTable::GraphAddMemsetNode, pGraphNode, graph, pDependencies,
                 numDependencies, &params, context);
  }
  return record(error);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* pNodeParams) {
  CUDA_MEMSET_NODE_PARAMS_v1 params{};
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  const cudaError_t error = in_context(&DriverTable::GraphMemsetNodeGetParams, node, &params);
  if (error == cudaSuccess) *pNodeParams = to_runtime(params);
  return error;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const cudaMemsetParams* pNodeParams) {
  if (pNodeParams == nullptr) return record(cudaErrorInvalidValue);
  const CUDA_MEMSET_NODE_PARAMS_v1 params = to_driver(*pNodeParams);
  return in_context(&DriverTable::GraphMemsetNodeSetParams, node, &params);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const cudaMemsetParams* pNodeParams) {
  CUcontext context = nullptr;
  cudaError_t error = pNodeParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) {
    const CUDA_MEMSET_NODE_PARAMS_v1 params = to_driver(*pNodeParams);
    error = call(&DriverTable::GraphExecMemsetNodeSetParams, hGraphExec, node, &params, context);
  }
  return record(error);
}

// ---- memory

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                     cudaMemAllocNodeParams* nodeParams) {
  return in_context(&DriverTable::GraphAddMemAllocNode, pGraphNode, graph, pDependencies,
                    numDependencies, nodeParams);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           cudaMemAllocNodeParams* params_out) {
  return in_context(&DriverTable::GraphMemAllocNodeGetParams, node, params_out);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                    void* dptr) {
  return in_context(&DriverTable::GraphAddMemFreeNode, pGraphNode, graph, pDependencies,
                    numDependencies, dptr);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* dptr_out) {
  return in_context(&DriverTable::GraphMemFreeNodeGetParams, node, dptr_out);
}

// ---- host functions, children, events

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                 const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                 const cudaHostNodeParams* pNodeParams) {
  return in_context(&DriverTable::GraphAddHostNode, pGraphNode, graph, pDependencies,
                    numDependencies, pNodeParams);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* pNodeParams) {
  return in_context(&DriverTable::GraphHostNodeGetParams, node, pNodeParams);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const cudaHostNodeParams* pNodeParams) {
  return in_context(&DriverTable::GraphHostNodeSetParams, node, pNodeParams);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* pNodeParams) {
  return in_context(&DriverTable::GraphExecHostNodeSetParams, hGraphExec, node, pNodeParams);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph) {
  return in_context(&DriverTable::GraphAddChildGraphNode, pGraphNode, graph, pDependencies,
                    numDependencies, childGraph);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* pGraph) {
  return in_context(&DriverTable::GraphChildGraphNodeGetGraph, node, pGraph);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph) {
  return in_context(&DriverTable::GraphExecChildGraphNodeSetParams, hGraphExec, node, childGraph);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                  const cudaGraphNode_t* pDependencies, size_t numDependencies) {
  return in_context(&DriverTable::GraphAddEmptyNode, pGraphNode, graph, pDependencies,
                    numDependencies);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t* pDependencies,
                                        size_t numDependencies, cudaEvent_t event) {
  return in_context(&DriverTable::GraphAddEventRecordNode, pGraphNode, graph, pDependencies,
                    numDependencies, event);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  return in_context(&DriverTable::GraphEventRecordNodeGetEvent, node, event_out);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return in_context(&DriverTable::GraphEventRecordNodeSetEvent, node, event);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                 cudaEvent_t event) {
  return in_context(&DriverTable::GraphExecEventRecordNodeSetEvent, hGraphExec, hNode, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                      cudaEvent_t event) {
  return in_context(&DriverTable::GraphAddEventWaitNode, pGraphNode, graph, pDependencies,
                    numDependencies, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  return in_context(&DriverTable::GraphEventWaitNodeGetEvent, node, event_out);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return in_context(&DriverTable::GraphEventWaitNodeSetEvent, node, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                               cudaEvent_t event) {
  return in_context(&DriverTable::GraphExecEventWaitNodeSetEvent, hGraphExec, hNode, event);
}

// ---- nodes of any type

namespace {

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                     const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  CUcontext context = nullptr;
  cudaError_t error = params == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*params, context, &driver_params);
  if (error == cudaSuccess) {
    error =
        call(&DriverTable::GraphAddNode, node, graph, dependencies, edges, count, &driver_params);
  }
  if (error == cudaSuccess) copy_results(driver_params, params);
  return record(error);
}

}  // namespace

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                             const cudaGraphNode_t* pDependencies,
                             const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                             cudaGraphNodeParams* nodeParams) {
  return add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}
#else
cudaError_t cudaGraphAddNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                             const cudaGraphNode_t* pDependencies, size_t numDependencies,
                             cudaGraphNodeParams* nodeParams) {
  return add_node(pGraphNode, graph, pDependencies, nullptr, numDependencies, nodeParams);
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                const cudaGraphNode_t* pDependencies,
                                const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                cudaGraphNodeParams* nodeParams) {
  return add_node(pGraphNode, graph, pDependencies, dependencyData, numDependencies, nodeParams);
}
#endif

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* nodeParams) {
  CUgraphNodeParams params;
  CUcontext context = nullptr;
  cudaError_t error = nodeParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*nodeParams, context, &params);
  if (error == cudaSuccess) error = call(&DriverTable::GraphNodeSetParams, node, &params);
  return record(error);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* nodeParams) {
  CUgraphNodeParams params;
  CUcontext context = nullptr;
  cudaError_t error = nodeParams == nullptr ? cudaErrorInvalidValue : enter(&context);
  if (error == cudaSuccess) error = to_driver(*nodeParams, context, &params);
  if (error == cudaSuccess) {
    error = call(&DriverTable::GraphExecNodeSetParams, graphExec, node, &params);
  }
  return record(error);
}
