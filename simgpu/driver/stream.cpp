// Streams. Work completes when it is submitted, except host functions (host_tasks.h) and, on
// request, events (event.cpp): synchronising waits for the first and completes the second.
#include <algorithm>

#include "driver.h"
#include "host_tasks.h"
#include "tables.h"

namespace simgpu {

Stream* new_stream(Context* context, unsigned flags, int priority, bool implicit) {
  Stream* stream = driver().streams.create();
  if (stream == nullptr) return nullptr;
  stream->context = context;
  stream->generation = context->generation;
  stream->flags = flags;
  stream->priority = priority;
  stream->implicit = implicit;
  stream->id = next_id();
  return stream;
}

Stream* per_thread_stream(Context* context) {
  ThreadState& state = thread_state();
  if (likely(state.stream_context == context && state.stream != nullptr && state.stream->alive()))
    return state.stream;
  // By thread and context; a thread's streams are inherited by a later thread in its place.
  static std::mutex mutex;
  static auto& streams = *new std::map<std::pair<ThreadState*, Context*>, Stream*>;
  std::lock_guard lock(mutex);
  Stream*& stream = streams[{&state, context}];
  if (stream == nullptr) stream = new_stream(context, CU_STREAM_DEFAULT, 0, true);
  if (stream == nullptr) return nullptr;
  stream->generation = context->generation;
  state.stream_context = context;
  state.stream = stream;
  return stream;
}

CUresult find_stream(CUstream handle, Context* context, Stream*& stream) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    stream = context->legacy_stream;
  } else if (handle == CU_STREAM_PER_THREAD) {
    stream = per_thread_stream(context);
    if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    stream = driver().streams.find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->alive()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  return CUDA_SUCCESS;
}

void complete_stream(Stream* stream) {
  wait_host_task(stream->host_ticket.load(std::memory_order_acquire));
  stream->completed.store(stream->recorded.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  trim_pools_on_synchronise(stream->context->device);
}

void wait_for_host_functions(Stream* stream) {
  wait_host_task(stream->host_ticket.load(std::memory_order_acquire));
}

void enqueue_host_function(Stream* stream, std::function<void()> function) {
  std::uint64_t ticket = submit_host_task(std::move(function));
  if (ticket != 0) stream->host_ticket.store(ticket, std::memory_order_release);
}

void complete_context(Context* context) {
  driver().streams.for_each([&](Stream* stream) {
    if (stream->context != context) return;
    wait_host_task(stream->host_ticket.load(std::memory_order_acquire));
    stream->completed.store(stream->recorded.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
  });
  trim_pools_on_synchronise(context->device);
}

namespace {

// A stream's own context where the handle says which, the current one otherwise.
CUresult enter_stream(CUstream handle, Stream*& stream) {
  SIMGPU_TRY(require_init());
  Context* context = current_context();
  bool implicit = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (implicit) SIMGPU_TRY(enter(context));
  return find_stream(handle, context, stream);
}

CUresult create(CUstream* handle, unsigned flags, int priority) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = new_stream(context, flags, std::clamp(priority, -5, 0), false);
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = driver().streams.handle(stream);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuStreamCreate(CUstream* handle, unsigned int flags) {
  return create(handle, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
  return create(handle, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  SIMGPU_TRY(require_init());
  Stream* stream = driver().streams.find(handle);
  if (stream == nullptr || stream->implicit) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->alive()) {
    driver().streams.destroy(stream);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (stream->capture.load() != nullptr) abandon_capture(stream);
  wait_host_task(stream->host_ticket.load());
  driver().streams.destroy(stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream handle) {
  return cuStreamDestroy_v2(handle);
}

CUresult cuStreamSynchronize(CUstream handle) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  SIMGPU_TRY(refuse_synchronise(stream));
  complete_stream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  SIMGPU_TRY(refuse_synchronise(stream));
  return host_task_done(stream->host_ticket.load(std::memory_order_acquire)) ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = stream->context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = driver().contexts.handle(stream->context);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(handle, context);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *green = nullptr;  // no stream here belongs to one
  return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(stream->attributes_mutex);
  auto found = stream->attributes.find(attribute);
  *value = found != stream->attributes.end() ? found->second : CUstreamAttrValue{};
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(stream->attributes_mutex);
  stream->attributes[attribute] = *value;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    stream->priority = std::clamp(value->priority, -5, 0);
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream destination, CUstream source) {
  Stream* to;
  Stream* from;
  SIMGPU_TRY(enter_stream(destination, to));
  SIMGPU_TRY(enter_stream(source, from));
  if (to == from) return CUDA_SUCCESS;
  std::scoped_lock lock(to->attributes_mutex, from->attributes_mutex);
  to->attributes = from->attributes;
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned int) {
  Stream* stream;
  SIMGPU_TRY(enter_stream(handle, stream));
  return stream->capture.load() == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
