// The client's buffers: asked for when there is something to write, given back when full or
// flushed. One buffer at a time; the real library keeps one per thread, which no client may rely
// on.
#include <pthread.h>
#include <time.h>

#include <cstring>

#include "cupti/state.h"

namespace simgpu {
namespace {

struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  std::size_t used = 0;
  std::size_t records = 0;
  std::size_t most_records = 0;  // 0: as many as fit
};

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Buffer g_buffer;
CUpti_BuffersCallbackRequestFunc g_request = nullptr;
CUpti_BuffersCallbackCompleteFunc g_complete = nullptr;
std::uint32_t g_dropped = 0;
std::atomic<CUpti_TimestampCallbackFunc> g_clock{nullptr};

bool fits(const Buffer& buffer, std::size_t bytes) {
  return buffer.bytes != nullptr && buffer.size - buffer.used >= bytes &&
         (buffer.most_records == 0 || buffer.records < buffer.most_records);
}

// Under no lock: the client may call back into this library.
void give_back(const Buffer& buffer, CUpti_BuffersCallbackCompleteFunc complete) {
  if (buffer.bytes != nullptr && complete != nullptr)
    complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
}

Buffer ask_for_one(CUpti_BuffersCallbackRequestFunc request) {
  Buffer buffer;
  if (request != nullptr) request(&buffer.bytes, &buffer.size, &buffer.most_records);
  return buffer;
}

// The current buffer, or one where there is none; the caller must not hold the lock.
Buffer take_current(CUpti_BuffersCallbackCompleteFunc* complete) {
  pthread_mutex_lock(&g_mutex);
  const Buffer buffer = g_buffer;
  g_buffer = {};
  *complete = g_complete;
  pthread_mutex_unlock(&g_mutex);
  return buffer;
}

void put(const void* record, std::size_t bytes) {
  std::memcpy(g_buffer.bytes + g_buffer.used, record, bytes);
  g_buffer.used += bytes;
  ++g_buffer.records;
}

}  // namespace

std::uint64_t timestamp() {
  if (const CUpti_TimestampCallbackFunc clock = g_clock.load(std::memory_order_relaxed))
    return clock();
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void append_record(const void* record, std::size_t bytes) {
  pthread_mutex_lock(&g_mutex);
  if (fits(g_buffer, bytes)) {
    put(record, bytes);
    pthread_mutex_unlock(&g_mutex);
    return;
  }
  const Buffer full = g_buffer;
  g_buffer = {};
  const auto request = g_request;
  const auto complete = g_complete;
  pthread_mutex_unlock(&g_mutex);

  give_back(full, complete);
  Buffer fresh = ask_for_one(request);
  pthread_mutex_lock(&g_mutex);
  Buffer surplus;
  if (fits(g_buffer, bytes)) {
    surplus = fresh;  // another thread was faster
  } else {
    surplus = g_buffer;
    g_buffer = fresh;
  }
  if (fits(g_buffer, bytes))
    put(record, bytes);
  else
    ++g_dropped;
  pthread_mutex_unlock(&g_mutex);
  give_back(surplus, complete);
}

}  // namespace simgpu

using namespace simgpu;

ENTRY(cuptiActivityRegisterCallbacks)
(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed) {
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!connect()) return CUPTI_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock(&g_mutex);
  g_request = requested;
  g_complete = completed;
  pthread_mutex_unlock(&g_mutex);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityFlushAll)(std::uint32_t) {
  pthread_mutex_lock(&g_mutex);
  const bool registered = g_complete != nullptr;
  pthread_mutex_unlock(&g_mutex);
  if (!registered) return CUPTI_ERROR_INVALID_OPERATION;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  const Buffer buffer = take_current(&complete);
  give_back(buffer, complete);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityGetNextRecord)
(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    const std::size_t last = record_bytes((*record)->kind);
    if (last == 0) return CUPTI_ERROR_INVALID_KIND;
    next = reinterpret_cast<std::uint8_t*>(*record) + last;
  }
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* found = reinterpret_cast<CUpti_Activity*>(next);
  const std::size_t bytes = record_bytes(found->kind);
  if (bytes == 0 || next + bytes > buffer + valid_bytes) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityGetNumDroppedRecords)(CUcontext, std::uint32_t, std::size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_mutex_lock(&g_mutex);
  *dropped = g_dropped;
  g_dropped = 0;
  pthread_mutex_unlock(&g_mutex);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityRegisterTimestampCallback)(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  g_clock.store(clock);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiGetTimestamp)(std::uint64_t* now) {
  if (now == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *now = timestamp();
  return CUPTI_SUCCESS;
}
