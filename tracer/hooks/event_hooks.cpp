// The runtime's events, as PyTorch's allocator uses them: it records one on each stream that still
// uses a block, just before it reports that the block is freed (hooks/pending_frees.h).
#include <cuda_runtime_api.h>

#include "hooks/pending_frees.h"
#include "hooks/real_functions.h"
#include "record/guard.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace vramtrack {
namespace {

template <class Function, class... Arguments>
cudaError_t record_event(RealFunction real, cudaEvent_t event, Arguments... arguments) {
  if (real.address == nullptr) return cudaErrorInsufficientDriver;
  const cudaError_t result = reinterpret_cast<Function>(real.address)(event, arguments...);
  if (result == cudaSuccess && real.from_allocator) note_event_record(event);
  return result;
}

// What is not followed by a report shows that an event was recorded for something else.
template <class Function>
cudaError_t end_event(RealFunction real, cudaEvent_t event) {
  if (real.address == nullptr) return cudaErrorInsufficientDriver;
  const cudaError_t result = reinterpret_cast<Function>(real.address)(event);
  const Guard guard;
  forget_event_records();
  if (result == cudaSuccess) end_pending_event(event);
  return result;
}

template <class Function>
cudaError_t wait_for_event(RealFunction real, cudaStream_t stream, cudaEvent_t event,
                           unsigned flags) {
  if (real.address == nullptr) return cudaErrorInsufficientDriver;
  forget_event_records();
  return reinterpret_cast<Function>(real.address)(stream, event, flags);
}

}  // namespace
}  // namespace vramtrack

#define REAL(name) vramtrack::real_with_caller(vramtrack::Hook::name, __builtin_return_address(0))

#define RECORD(name)                                                            \
  EXPORTED cudaError_t name(cudaEvent_t event, cudaStream_t stream) {           \
    return vramtrack::record_event<decltype(&name)>(REAL(name), event, stream); \
  }
RECORD(cudaEventRecord)
RECORD(cudaEventRecord_ptsz)

#define RECORD_WITH_FLAGS(name)                                                        \
  EXPORTED cudaError_t name(cudaEvent_t event, cudaStream_t stream, unsigned flags) {  \
    return vramtrack::record_event<decltype(&name)>(REAL(name), event, stream, flags); \
  }
RECORD_WITH_FLAGS(cudaEventRecordWithFlags)
RECORD_WITH_FLAGS(cudaEventRecordWithFlags_ptsz)

#define END(name)                                                    \
  EXPORTED cudaError_t name(cudaEvent_t event) {                     \
    return vramtrack::end_event<decltype(&name)>(REAL(name), event); \
  }
END(cudaEventQuery)
END(cudaEventSynchronize)
END(cudaEventDestroy)

#define WAIT(name)                                                                       \
  EXPORTED cudaError_t name(cudaStream_t stream, cudaEvent_t event, unsigned flags) {    \
    return vramtrack::wait_for_event<decltype(&name)>(REAL(name), stream, event, flags); \
  }
WAIT(cudaStreamWaitEvent)
WAIT(cudaStreamWaitEvent_ptsz)
