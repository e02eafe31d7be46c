// Events. They complete when they are recorded, or, with SIMGPU_EVENTS=late:<seed>, after a few
// queries: then what a program does while work is pending can be rehearsed, and repeated.
#include <cmath>

#include "driver.h"
#include "host_tasks.h"
#include "tables.h"

namespace simgpu {

CUresult find_event(CUevent handle, Event*& event) {
  event = driver().events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->context != nullptr && (!event->context->active.load(std::memory_order_relaxed) ||
                                    event->generation != event->context->generation.load()))
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return CUDA_SUCCESS;
}

namespace {

// 1 to 4 queries, from the seed and the number of the record.
int queries_until_done(std::uint64_t seed) {
  static std::atomic<std::uint64_t> records{0};
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + records.fetch_add(1, std::memory_order_relaxed);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<int>((x >> 60) % 4) + 1;
}

bool stream_has_passed(const Event* event) {
  Stream* stream = event->stream.load(std::memory_order_acquire);
  return stream == nullptr || stream->completed.load(std::memory_order_relaxed) >=
                                  event->sequence.load(std::memory_order_relaxed);
}

void pass(Event* event) {
  Stream* stream = event->stream.load(std::memory_order_acquire);
  if (stream == nullptr) return;
  std::uint64_t sequence = event->sequence.load(std::memory_order_relaxed);
  std::uint64_t before = stream->completed.load(std::memory_order_relaxed);
  while (before < sequence && !stream->completed.compare_exchange_weak(before, sequence)) {
  }
}

// Whether the event is done; `asks` takes one of the queries that a late event waits for.
bool done(Event* event, bool asks) {
  if (!event->recorded.load(std::memory_order_acquire)) return true;
  if (!host_task_done(event->host_ticket.load(std::memory_order_relaxed))) return false;
  if (likely(driver().late_seed == 0) || stream_has_passed(event)) return true;
  if (!asks || event->queries_left.fetch_sub(1, std::memory_order_relaxed) > 1) return false;
  pass(event);
  return true;
}

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags) {
  SIMGPU_TRY(require_init());
  Event* event;
  SIMGPU_TRY(find_event(handle, event));
  Stream* stream;
  SIMGPU_TRY(find_stream(stream_handle, event->context, stream));
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return capture_event_record(stream, event, flags);
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  event->capture_id.store(0, std::memory_order_relaxed);
  record_event(event, stream);
  return CUDA_SUCCESS;
}

}  // namespace

void record_event(Event* event, Stream* stream) {
  if ((event->flags & CU_EVENT_DISABLE_TIMING) == 0)
    event->time_ns.store(next_timestamp(), std::memory_order_relaxed);
  event->host_ticket.store(stream->host_ticket.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
  if (driver().late_seed != 0) {
    event->sequence.store(stream->recorded.fetch_add(1, std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    event->queries_left.store(queries_until_done(driver().late_seed), std::memory_order_relaxed);
    event->stream.store(stream, std::memory_order_release);
  }
  event->recorded.store(true, std::memory_order_release);
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  constexpr unsigned kKnown =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (handle == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Event* event = driver().events.create();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->context = context;
  event->generation = context->generation;
  event->flags = flags;
  *handle = driver().events.handle(event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  SIMGPU_TRY(require_init());
  Event* event = driver().events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  driver().events.destroy(event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent handle) {
  return cuEventDestroy_v2(handle);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  return record(event, stream, flags);
}

CUresult cuCtxRecordEvent(CUcontext context_handle, CUevent handle) {
  SIMGPU_TRY(require_init());
  Context* context = driver().contexts.find(context_handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Event* event;
  SIMGPU_TRY(find_event(handle, event));
  record_event(event, context->legacy_stream);
  return CUDA_SUCCESS;
}

CUresult cuCtxWaitEvent(CUcontext context_handle, CUevent handle) {
  SIMGPU_TRY(require_init());
  if (driver().contexts.find(context_handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Event* event;
  return find_event(handle, event);
}

CUresult cuEventQuery(CUevent handle) {
  SIMGPU_TRY(require_init());
  Event* event;
  SIMGPU_TRY(find_event(handle, event));
  SIMGPU_TRY(refuse_in_capture());
  if (event_is_captured(event)) return CUDA_ERROR_CAPTURED_EVENT;
  return done(event, true) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
  SIMGPU_TRY(require_init());
  Event* event;
  SIMGPU_TRY(find_event(handle, event));
  SIMGPU_TRY(refuse_in_capture());
  if (event_is_captured(event)) return CUDA_ERROR_CAPTURED_EVENT;
  if (!event->recorded.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  wait_host_task(event->host_ticket.load());
  pass(event);
  trim_pools_on_synchronise(event->context->device);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  SIMGPU_TRY(require_init());
  Event* start;
  Event* end;
  SIMGPU_TRY(find_event(start_handle, start));
  SIMGPU_TRY(find_event(end_handle, end));
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!start->recorded.load() || !end->recorded.load()) return CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!done(start, false) || !done(end, false)) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(
      static_cast<double>(static_cast<std::int64_t>(end->time_ns.load() - start->time_ns.load())) /
      1e6);
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
  SIMGPU_TRY(require_init());
  Event* event;
  SIMGPU_TRY(find_event(handle, event));
  Context* context = current_context();
  Stream* stream;
  if (stream_handle == nullptr || stream_handle == CU_STREAM_LEGACY ||
      stream_handle == CU_STREAM_PER_THREAD)
    SIMGPU_TRY(enter(context));
  SIMGPU_TRY(find_stream(stream_handle, context, stream));
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture.load(std::memory_order_acquire) != nullptr || event_is_captured(event))
    return capture_event_wait(stream, event, flags);
  // The host functions before the event come before what this stream does next.
  std::uint64_t ticket = event->host_ticket.load(std::memory_order_relaxed);
  if (ticket > stream->host_ticket.load(std::memory_order_relaxed))
    stream->host_ticket.store(ticket, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
