// Graphs as a whole: making, reading their shape, instantiating, user objects.
#include "runtime/call.h"

using namespace simgpu;

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  return in_context(&DriverTable::GraphCreate, pGraph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return in_context(&DriverTable::GraphDestroy, graph);
}

cudaError_t cudaGraphClone(cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) {
  return in_context(&DriverTable::GraphClone, pGraphClone, originalGraph);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* pNode, cudaGraphNode_t originalNode,
                                     cudaGraph_t clonedGraph) {
  return in_context(&DriverTable::GraphNodeFindInClone, pNode, originalNode, clonedGraph);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* pType) {
  static_assert(static_cast<int>(cudaGraphNodeTypeKernel) == CU_GRAPH_NODE_TYPE_KERNEL &&
                static_cast<int>(cudaGraphNodeTypeMemFree) == CU_GRAPH_NODE_TYPE_MEM_FREE &&
                static_cast<int>(cudaGraphNodeTypeConditional) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
  return in_context(&DriverTable::GraphNodeGetType, node, pType);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  return in_context(&DriverTable::GraphGetNodes, graph, nodes, numNodes);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* pRootNodes,
                                  size_t* pNumRootNodes) {
  return in_context(&DriverTable::GraphGetRootNodes, graph, pRootNodes, pNumRootNodes);
}

#if CUDART_VERSION >= 13000
#define WITH_EDGES(name) name
#else
// CUDA 12 has each of these twice: as it was before edges carried data, and with the data, as _v2.
#define WITH_EDGES(name) name##_v2

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              size_t* numEdges) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, numEdges);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* pDependencies,
                                         size_t* pNumDependencies) {
  return cudaGraphNodeGetDependencies_v2(node, pDependencies, nullptr, pNumDependencies);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* pDependentNodes,
                                           size_t* pNumDependentNodes) {
  return cudaGraphNodeGetDependentNodes_v2(node, pDependentNodes, nullptr, pNumDependentNodes);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t numDependencies) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, numDependencies);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, size_t numDependencies) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, numDependencies);
}
#endif

cudaError_t WITH_EDGES(cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t* from,
                                          cudaGraphNode_t* to, cudaGraphEdgeData* edgeData,
                                          size_t* numEdges) {
  return in_context(&DriverTable::GraphGetEdges, graph, from, to, edgeData, numEdges);
}

cudaError_t WITH_EDGES(cudaGraphNodeGetDependencies)(cudaGraphNode_t node,
                                                     cudaGraphNode_t* pDependencies,
                                                     cudaGraphEdgeData* edgeData,
                                                     size_t* pNumDependencies) {
  return in_context(&DriverTable::GraphNodeGetDependencies, node, pDependencies, edgeData,
                    pNumDependencies);
}

cudaError_t WITH_EDGES(cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node,
                                                       cudaGraphNode_t* pDependentNodes,
                                                       cudaGraphEdgeData* edgeData,
                                                       size_t* pNumDependentNodes) {
  return in_context(&DriverTable::GraphNodeGetDependentNodes, node, pDependentNodes, edgeData,
                    pNumDependentNodes);
}

cudaError_t WITH_EDGES(cudaGraphAddDependencies)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                 const cudaGraphNode_t* to,
                                                 const cudaGraphEdgeData* edgeData,
                                                 size_t numDependencies) {
  return in_context(&DriverTable::GraphAddDependencies, graph, from, to, edgeData, numDependencies);
}

cudaError_t WITH_EDGES(cudaGraphRemoveDependencies)(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                    const cudaGraphNode_t* to,
                                                    const cudaGraphEdgeData* edgeData,
                                                    size_t numDependencies) {
  return in_context(&DriverTable::GraphRemoveDependencies, graph, from, to, edgeData,
                    numDependencies);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return in_context(&DriverTable::GraphDestroyNode, node);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return in_context(&DriverTable::GraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return in_context(&DriverTable::GraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long* flags) {
  return in_context(&DriverTable::GraphExecGetFlags, graphExec, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo* resultInfo) {
  return in_context(&DriverTable::GraphExecUpdate, hGraphExec, hGraph, resultInfo);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  return in_context(&DriverTable::GraphExecDestroy, graphExec);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                    unsigned int isEnabled) {
  return in_context(&DriverTable::GraphNodeSetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                    unsigned int* isEnabled) {
  return in_context(&DriverTable::GraphNodeGetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return in_context(&DriverTable::GraphDebugDotPrint, graph, path, flags);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  return in_driver(&DriverTable::UserObjectCreate, object_out, ptr, destroy, initialRefcount,
                   flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return in_driver(&DriverTable::UserObjectRetain, object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return in_driver(&DriverTable::UserObjectRelease, object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
  return in_driver(&DriverTable::GraphRetainUserObject, graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count) {
  return in_driver(&DriverTable::GraphReleaseUserObject, graph, object, count);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* pHandle_out,
                                             cudaGraph_t graph, unsigned int defaultLaunchValue,
                                             unsigned int flags) {
  CUcontext context = nullptr;
  cudaError_t error = enter_context();
  if (error == cudaSuccess) error = call(&DriverTable::CtxGetCurrent, &context);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::GraphConditionalHandleCreate, pHandle_out,
                                           graph, context, defaultLaunchValue, flags);
}
