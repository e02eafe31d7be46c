// From what the driver tells to activity records in CUPTI's layouts. Work is done when it is
// submitted, so that a kernel's times are two readings of the clock, one after the other.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "cupti/state.h"

namespace simgpu {
namespace {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using PoolRecord = CUpti_ActivityMemoryPool3;
#else
using KernelRecord = CUpti_ActivityKernel9;
using PoolRecord = CUpti_ActivityMemoryPool2;
#endif
using MemoryRecord = CUpti_ActivityMemory4;
using CopyRecord = CUpti_ActivityMemcpy6;
using SetRecord = CUpti_ActivityMemset4;

std::atomic<bool> g_wanted[CUPTI_ACTIVITY_KIND_COUNT];
// Driver functions whose calls are recorded although the kind as a whole is not.
std::atomic<bool> g_wanted_function[CUPTI_DRIVER_TRACE_CBID_SIZE];
std::atomic<int> g_wanted_functions{0};

// Kinds that profilers ask for and that nothing here gives rise to.
bool is_silent(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_NAME:
    case CUPTI_ACTIVITY_KIND_MARKER:
      return true;
    default:
      return false;
  }
}

// ---- names outlive their modules, as the documentation asks
struct Name {
  Name* next;
  char text[1];
};

pthread_mutex_t g_names_mutex = PTHREAD_MUTEX_INITIALIZER;
constexpr std::size_t kNameBuckets = 4096;
Name* g_names[kNameBuckets];

const char* lasting_name(const char* text) {
  std::size_t hash = 5381;
  for (const char* c = text; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  Name*& bucket = g_names[hash % kNameBuckets];
  pthread_mutex_lock(&g_names_mutex);
  Name* name = bucket;
  while (name != nullptr && std::strcmp(name->text, text) != 0) name = name->next;
  if (name == nullptr) {
    const std::size_t length = std::strlen(text);
    name = static_cast<Name*>(std::malloc(sizeof(Name) + length));
    if (name != nullptr) {
      std::memcpy(name->text, text, length + 1);
      name->next = bucket;
      bucket = name;
    }
  }
  pthread_mutex_unlock(&g_names_mutex);
  return name != nullptr ? name->text : "";
}

// ---- external correlation: a stack of ids per thread and kind
constexpr int kExternalDepth = 64;
struct External {
  int depth;
  std::uint64_t ids[kExternalDepth];
};
thread_local External t_external[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
thread_local std::uint64_t t_call_start;

std::uint32_t stream_of(const simgpu_activity& activity) {
  return activity.stream != 0 ? activity.stream : CUPTI_INVALID_STREAM_ID;
}

template <class Record>
Record begun(CUpti_ActivityKind kind, const simgpu_activity& activity) {
  Record record;
  std::memset(static_cast<void*>(&record), 0, sizeof record);
  record.kind = kind;
  record.correlationId = activity.correlation;
  return record;
}

template <class Record>
Record work(CUpti_ActivityKind kind, const simgpu_activity& activity) {
  auto record = begun<Record>(kind, activity);
  record.start = timestamp();
  record.end = timestamp() + 1;
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.contextId = activity.context;
  record.streamId = activity.stream;
  record.graphNodeId = activity.graph_node;
  return record;
}

template <class Record>
void append(const Record& record) {
  append_record(&record, sizeof record);
}

void external_records(const simgpu_activity& activity) {
  for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    const External& external = t_external[kind];
    if (external.depth == 0 || external.depth > kExternalDepth) continue;
    auto record = begun<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                           activity);
    record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    record.externalId = external.ids[external.depth - 1];
    append(record);
  }
}

bool wants_call(const simgpu_activity& activity) {
  return wants(CUPTI_ACTIVITY_KIND_DRIVER) ||
         (g_wanted_functions.load(std::memory_order_relaxed) != 0 &&
          g_wanted_function[driver_callback_id(activity.function)].load(std::memory_order_relaxed));
}

void api_record(const simgpu_activity& activity) {
  auto record = begun<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER, activity);
  record.cbid = driver_callback_id(activity.function);
  record.start = t_call_start;
  record.end = timestamp();
  record.processId = static_cast<std::uint32_t>(getpid());
  record.threadId = static_cast<std::uint32_t>(pthread_self());
  record.returnValue = static_cast<std::uint32_t>(activity.result);
  append(record);
}

void memory_record(const simgpu_activity& activity) {
  auto record = begun<MemoryRecord>(CUPTI_ACTIVITY_KIND_MEMORY2, activity);
  record.memoryOperationType = activity.kind == SIMGPU_ALLOCATED
                                   ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                   : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(activity.memory);
  record.address = activity.address;
  record.bytes = activity.size;
  record.timestamp = timestamp();
  record.processId = static_cast<std::uint32_t>(getpid());
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.contextId = activity.context != 0 ? activity.context : CUPTI_INVALID_CONTEXT_ID;
  record.streamId = stream_of(activity);
  record.isAsync = static_cast<std::uint32_t>(activity.asynchronous);
  if (activity.pool != 0) {
    record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    record.memoryPoolConfig.address = activity.pool;
    record.memoryPoolConfig.releaseThreshold = activity.pool_threshold;
    record.memoryPoolConfig.pool.size = activity.pool_reserved;
    record.memoryPoolConfig.utilizedSize = activity.pool_used;
  }
  append(record);
}

void pool_record(const simgpu_activity& activity) {
  auto record = begun<PoolRecord>(CUPTI_ACTIVITY_KIND_MEMORY_POOL, activity);
  record.memoryPoolOperationType =
      static_cast<CUpti_ActivityMemoryPoolOperationType>(activity.operation);
  record.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  record.processId = static_cast<std::uint32_t>(getpid());
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.minBytesToKeep = activity.size;
  record.address = activity.pool;
  record.size = activity.pool_reserved;
  record.releaseThreshold = activity.pool_threshold;
  record.timestamp = timestamp();
  record.utilizedSize = activity.pool_used;
  append(record);
}

void kernel_record(CUpti_ActivityKind kind, const simgpu_activity& activity) {
  auto record = work<KernelRecord>(kind, activity);
  record.completed = record.end;
  record.registersPerThread = static_cast<std::uint16_t>(activity.registers);
  record.gridX = static_cast<std::int32_t>(activity.grid[0]);
  record.gridY = static_cast<std::int32_t>(activity.grid[1]);
  record.gridZ = static_cast<std::int32_t>(activity.grid[2]);
  record.blockX = static_cast<std::int32_t>(activity.block[0]);
  record.blockY = static_cast<std::int32_t>(activity.block[1]);
  record.blockZ = static_cast<std::int32_t>(activity.block[2]);
  record.dynamicSharedMemory = static_cast<std::int32_t>(activity.shared_bytes);
  record.name = lasting_name(activity.name);
  append(record);
}

CUpti_ActivityMemcpyKind copy_kind(const simgpu_activity& activity) {
  const auto on_host = [](int memory) {
    return memory == SIMGPU_MEMORY_HOST || memory == SIMGPU_MEMORY_PINNED;
  };
  if (on_host(activity.from_memory))
    return on_host(activity.memory) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOH
                                    : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return on_host(activity.memory) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                  : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

void copy_record(const simgpu_activity& activity) {
  auto record = work<CopyRecord>(CUPTI_ACTIVITY_KIND_MEMCPY, activity);
  record.copyKind = static_cast<std::uint8_t>(copy_kind(activity));
  record.srcKind = static_cast<std::uint8_t>(activity.from_memory);
  record.dstKind = static_cast<std::uint8_t>(activity.memory);
  record.bytes = activity.size;
  append(record);
}

void set_record(const simgpu_activity& activity) {
  auto record = work<SetRecord>(CUPTI_ACTIVITY_KIND_MEMSET, activity);
  record.value = activity.value;
  record.bytes = activity.size;
  record.memoryKind = static_cast<std::uint16_t>(activity.memory);
  append(record);
}

CUptiResult set_wanted(CUpti_ActivityKind kind, bool wanted) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
    return CUPTI_ERROR_INVALID_KIND;
  if (!connect()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (record_bytes(kind) == 0 && !is_silent(kind)) return CUPTI_ERROR_NOT_COMPATIBLE;
  g_wanted[kind].store(wanted, std::memory_order_release);
  return CUPTI_SUCCESS;
}

}  // namespace

bool wants(CUpti_ActivityKind kind) {
  return g_wanted[kind].load(std::memory_order_relaxed);
}

std::size_t record_bytes(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(MemoryRecord);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      return sizeof(PoolRecord);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(KernelRecord);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CopyRecord);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(SetRecord);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return 0;
  }
}

void make_records(const simgpu_activity& activity) {
  switch (activity.kind) {
    case SIMGPU_CALL_BEGINS:
      if (wants_call(activity)) t_call_start = timestamp();
      if (wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) external_records(activity);
      return;
    case SIMGPU_CALL_ENDS:
      if (wants_call(activity)) api_record(activity);
      return;
    case SIMGPU_ALLOCATED:
    case SIMGPU_RELEASED:
      if (wants(CUPTI_ACTIVITY_KIND_MEMORY2)) memory_record(activity);
      return;
    case SIMGPU_POOL:
      if (wants(CUPTI_ACTIVITY_KIND_MEMORY_POOL)) pool_record(activity);
      return;
    case SIMGPU_KERNEL:
      if (wants(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL))
        kernel_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, activity);
      else if (wants(CUPTI_ACTIVITY_KIND_KERNEL))
        kernel_record(CUPTI_ACTIVITY_KIND_KERNEL, activity);
      return;
    case SIMGPU_COPY:
      if (wants(CUPTI_ACTIVITY_KIND_MEMCPY)) copy_record(activity);
      return;
    case SIMGPU_SET:
      if (wants(CUPTI_ACTIVITY_KIND_MEMSET)) set_record(activity);
      return;
    default:
      return;
  }
}

}  // namespace simgpu

using namespace simgpu;

ENTRY(cuptiActivityEnable)(CUpti_ActivityKind kind) {
  return set_wanted(kind, true);
}

ENTRY(cuptiActivityDisable)(CUpti_ActivityKind kind) {
  return set_wanted(kind, false);
}

ENTRY(cuptiActivityEnableContext)(CUcontext context, CUpti_ActivityKind kind) {
  return context == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : set_wanted(kind, true);
}

ENTRY(cuptiActivityDisableContext)(CUcontext context, CUpti_ActivityKind kind) {
  return context == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : set_wanted(kind, false);
}

ENTRY(cuptiActivityEnableDriverApi)(CUpti_CallbackId cbid, std::uint8_t enable) {
  if (cbid == 0 || cbid >= CUPTI_DRIVER_TRACE_CBID_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!connect()) return CUPTI_ERROR_NOT_INITIALIZED;
  const bool wanted = enable != 0;
  if (g_wanted_function[cbid].exchange(wanted) != wanted)
    g_wanted_functions.fetch_add(wanted ? 1 : -1);
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityPushExternalCorrelationId)
(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
      kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  External& external = t_external[kind];
  if (external.depth < kExternalDepth) external.ids[external.depth] = id;
  ++external.depth;
  return CUPTI_SUCCESS;
}

ENTRY(cuptiActivityPopExternalCorrelationId)
(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
      kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
    return CUPTI_ERROR_INVALID_PARAMETER;
  External& external = t_external[kind];
  if (external.depth == 0) return CUPTI_ERROR_QUEUE_EMPTY;
  --external.depth;
  if (last != nullptr && external.depth < kExternalDepth) *last = external.ids[external.depth];
  return CUPTI_SUCCESS;
}
