// Streams and events, where stream 0 has no second meaning.
#include "runtime/call.h"

using namespace simgpu;

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return in_context(&DriverTable::StreamCreate, pStream, CU_STREAM_DEFAULT);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return in_context(&DriverTable::StreamCreate, pStream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  return in_context(&DriverTable::StreamCreateWithPriority, pStream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return record(cudaErrorInvalidResourceHandle);
  return in_context(&DriverTable::StreamDestroy, stream);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return in_driver(&DriverTable::ThreadExchangeStreamCaptureMode, mode);
}

// The default flags are spelled here because C++ callers get this overload from a header of their
// own.
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return in_context(&DriverTable::EventCreate, event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return in_context(&DriverTable::EventCreate, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context(&DriverTable::EventDestroy, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_context(&DriverTable::EventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context(&DriverTable::EventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return in_context(&DriverTable::EventElapsedTime, ms, start, end);
}

#if CUDART_VERSION < 13000
#undef cudaEventElapsedTime
SIMGPU_EXPORT cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return in_context(&DriverTable::EventElapsedTime, ms, start, end);
}
#endif

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return in_context(&DriverTable::IpcGetEventHandle, handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return in_context(&DriverTable::IpcOpenEventHandle, event, handle);
}
