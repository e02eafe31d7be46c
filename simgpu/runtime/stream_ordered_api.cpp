// What works on a stream, other than copies and launches: waiting, callbacks, attributes, capture,
// pools. Compiled twice: the second time the header renames all of it to _ptsz, and stream 0 is the
// calling thread's.
#include <memory>

#include "runtime/call.h"

using namespace simgpu;

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_context(&StreamTable::StreamQuery, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context(&StreamTable::StreamSynchronize, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return in_context(&StreamTable::StreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int* priority) {
  return in_context(&StreamTable::StreamGetPriority, hStream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int* flags) {
  return in_context(&StreamTable::StreamGetFlags, hStream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long* streamId) {
  return in_context(&StreamTable::StreamGetId, hStream, streamId);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  return in_context(&StreamTable::StreamGetDevice, hStream, device);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
  return in_context(&StreamTable::StreamCopyAttributes, dst, src);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                   cudaLaunchAttributeValue* value_out) {
  return in_context(&StreamTable::StreamGetAttribute, hStream, attr, value_out);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                   const cudaLaunchAttributeValue* value) {
  return in_context(&StreamTable::StreamSetAttribute, hStream, attr, value);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* devPtr, size_t length,
                                     unsigned int flags) {
  return in_context(&StreamTable::StreamAttachMemAsync, stream, devPtr, length, flags);
}

namespace {

// The runtime's callback takes a cudaError_t, the driver's a CUresult: same numbers, other types.
struct Callback {
  cudaStreamCallback_t function;
  void* user_data;
};

void CUDA_CB run_callback(CUstream stream, CUresult status, void* argument) {
  const Callback callback = *static_cast<Callback*>(argument);
  delete static_cast<Callback*>(argument);
  callback.function(stream, to_runtime(status), callback.user_data);
}

}  // namespace

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void* userData, unsigned int flags) {
  if (callback == nullptr) return record(cudaErrorInvalidValue);
  auto argument = std::make_unique<Callback>(Callback{callback, userData});
  const cudaError_t error =
      in_context(&StreamTable::StreamAddCallback, stream, &run_callback, argument.get(), flags);
  if (error == cudaSuccess) static_cast<void>(argument.release());  // run_callback owns it now
  return error;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  return in_context(&StreamTable::LaunchHostFunc, stream, fn, userData);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_context(&StreamTable::EventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return in_context(&StreamTable::EventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return in_context(&StreamTable::StreamBeginCapture, stream, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* dependencyData,
                                          size_t numDependencies, cudaStreamCaptureMode mode) {
  return in_context(&StreamTable::StreamBeginCaptureToGraph, stream, graph, dependencies,
                    dependencyData, numDependencies, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return in_context(&StreamTable::StreamEndCapture, stream, pGraph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* pCaptureStatus) {
  return in_context(&StreamTable::StreamIsCapturing, stream, pCaptureStatus);
}

#if CUDART_VERSION >= 13000
#define CAPTURE_INFO cudaStreamGetCaptureInfo
#define UPDATE_CAPTURE cudaStreamUpdateCaptureDependencies
#else
#define CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#define UPDATE_CAPTURE cudaStreamUpdateCaptureDependencies_v2
#endif

cudaError_t CAPTURE_INFO(cudaStream_t stream, cudaStreamCaptureStatus* captureStatus_out,
                         unsigned long long* id_out, cudaGraph_t* graph_out,
                         const cudaGraphNode_t** dependencies_out,
                         const cudaGraphEdgeData** edgeData_out, size_t* numDependencies_out) {
  return in_context(&StreamTable::StreamGetCaptureInfo, stream, captureStatus_out, id_out,
                    graph_out, dependencies_out, edgeData_out, numDependencies_out);
}

cudaError_t UPDATE_CAPTURE(cudaStream_t stream, cudaGraphNode_t* dependencies,
                           const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                           unsigned int flags) {
  return in_context(&StreamTable::StreamUpdateCaptureDependencies, stream, dependencies,
                    dependencyData, numDependencies, flags);
}

#if CUDART_VERSION < 13000
// CUDA 12 also has the forms from before edges carried data. Its header renames this one to _v2.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out, cudaGraph_t* graph_out,
                                     const cudaGraphNode_t** dependencies_out,
                                     size_t* numDependencies_out) {
  return CAPTURE_INFO(stream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                      numDependencies_out);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                size_t numDependencies, unsigned int flags) {
  return UPDATE_CAPTURE(stream, dependencies, nullptr, numDependencies, flags);
}

// And the plain name, for callers from before CUDA 11.3.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define OLD_CAPTURE_INFO cudaStreamGetCaptureInfo_ptsz
#else
#define OLD_CAPTURE_INFO cudaStreamGetCaptureInfo
#endif
#undef cudaStreamGetCaptureInfo
SIMGPU_EXPORT cudaError_t OLD_CAPTURE_INFO(cudaStream_t stream,
                                           cudaStreamCaptureStatus* captureStatus,
                                           unsigned long long* id) {
  return CAPTURE_INFO(stream, captureStatus, id, nullptr, nullptr, nullptr, nullptr);
}
#endif

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  return in_context(&StreamTable::MemAllocAsync, devPtr, size, hStream);
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t size, cudaMemPool_t memPool,
                                    cudaStream_t stream) {
  return in_context(&StreamTable::MemAllocFromPoolAsync, ptr, size, memPool, stream);
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  return in_context(&StreamTable::MemFreeAsync, devPtr, hStream);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* instantiateParams) {
  return in_context(&StreamTable::GraphInstantiateWithParams, pGraphExec, graph, instantiateParams);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return in_context(&StreamTable::GraphUpload, graphExec, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  return in_context(&StreamTable::GraphLaunch, graphExec, stream);
}
