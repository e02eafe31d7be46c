// The danger: which structure lies behind a kind depends on the version of the library that wrote
// it, not on the headers that this was built with. NVIDIA appends fields, so what is read here is
// what all versions since CUDA 11.8 have in common; the one younger field asks for the version.
#include "cupti/records.h"

#include <vramtrack/trace_format.h>

#include "cupti/clock.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

constexpr uint32_t kVersionWithSource = 26;  // CUDA 12.8

Memory memory_of(const CUpti_ActivityMemory4& record) {
  switch (record.memoryKind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return Memory::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      return record.memoryPoolConfig.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID
                 ? Memory::pool
                 : Memory::device;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return Memory::array;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      return Memory::managed;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return Memory::module_data;
    default:
      return Memory::none;
  }
}

uint64_t stream_of(uint32_t id) {
  return id == CUPTI_INVALID_STREAM_ID ? 0 : id;
}

uint32_t text_id(const char* text) {
  return text != nullptr ? intern_string(text) : 0;
}

void memory_event(const CUpti_ActivityMemory4& from, uint32_t version) {
  Event event{.kind = EventKind::cupti_memory,
              .memory = memory_of(from),
              .device = static_cast<int16_t>(from.deviceId),
              .stream = stream_of(from.streamId),
              .address = from.address,
              .size = from.bytes,
              .requested = from.correlationId,
              .object = from.memoryPoolConfig.address,
              .extra = trace_time_of(from.timestamp),
              .result = static_cast<int32_t>(from.memoryOperationType)};
  if (version >= kVersionWithSource) event.text = text_id(from.source);
  record(event);
}

void pool_event(const CUpti_ActivityMemoryPool3& from) {
  Event event{.kind = EventKind::cupti_pool,
              .memory = Memory::pool,
              .device = static_cast<int16_t>(from.deviceId),
              .size = from.size,
              .requested = from.correlationId,
              .object = from.address,
              .extra = trace_time_of(from.timestamp),
              .result = static_cast<int32_t>(from.memoryPoolOperationType)};
  record(event);
}

void kernel_event(const CUpti_ActivityKernel10& from) {
  Event event{.kind = EventKind::cupti_kernel,
              .device = static_cast<int16_t>(from.deviceId),
              .stream = stream_of(from.streamId),
              .size = from.end > from.start ? from.end - from.start : 0,
              .requested = from.correlationId,
              .extra = trace_time_of(from.start),
              .text = text_id(from.name)};
  record(event);
}

}  // namespace

void record_activities(const CuptiFunctions& cupti, uint32_t version, uint8_t* buffer,
                       size_t valid_bytes) {
  CUpti_Activity* next = nullptr;
  while (cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &next) == CUPTI_SUCCESS) {
    switch (next->kind) {
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        memory_event(*reinterpret_cast<const CUpti_ActivityMemory4*>(next), version);
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        pool_event(*reinterpret_cast<const CUpti_ActivityMemoryPool3*>(next));
        break;
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL:
        kernel_event(*reinterpret_cast<const CUpti_ActivityKernel10*>(next));
        break;
      default:
        break;
    }
  }
}

}  // namespace vramtrack
