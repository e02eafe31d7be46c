#include "hooks/capture.h"

#include "hooks/handlers.h"
#include "hooks/real_functions.h"

namespace vramtrack {

constinit std::atomic<bool> g_captures{false};

namespace {

CUresult noted(CUresult result) {
  if (result == CUDA_SUCCESS) g_captures.store(true, std::memory_order_relaxed);
  return result;
}

}  // namespace

bool ask_whether_captured(CUstream stream) {
  const DriverCalls& driver = driver_calls();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing != nullptr &&
         driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult stream_begin_old_capture(const Call& /*call*/, CUresult (*real)(CUstream),
                                  CUstream stream) {
  return noted(real(stream));
}

CUresult stream_begin_capture(const Call& /*call*/, CUresult (*real)(CUstream, CUstreamCaptureMode),
                              CUstream stream, CUstreamCaptureMode mode) {
  return noted(real(stream, mode));
}

#if CUDA_VERSION >= 12030
CUresult stream_begin_capture_to_graph(const Call& /*call*/,
                                       CUresult (*real)(CUstream, CUgraph, const CUgraphNode*,
                                                        const CUgraphEdgeData*, size_t,
                                                        CUstreamCaptureMode),
                                       CUstream stream, CUgraph graph,
                                       const CUgraphNode* dependencies,
                                       const CUgraphEdgeData* edges, size_t count,
                                       CUstreamCaptureMode mode) {
  return noted(real(stream, graph, dependencies, edges, count, mode));
}
#endif

}  // namespace vramtrack
