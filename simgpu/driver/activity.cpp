// Who listens, and what they are told.
#include "activity.h"

#include <mutex>

#include "pool.h"
#include "tables.h"

namespace simgpu {

std::atomic<int> g_listeners{0};

namespace {

constexpr int kMaxSinks = 4;
std::atomic<simgpu_activity_sink> g_sinks[kMaxSinks];
std::mutex g_sinks_mutex;
std::atomic<std::uint32_t> g_next_correlation{1};

thread_local const char* t_function = nullptr;
thread_local std::uint32_t t_correlation = 0;

simgpu_activity of_context(int kind, Context* context) {
  simgpu_activity activity{};
  activity.kind = kind;
  activity.device = -1;
  activity.correlation = t_correlation;
  activity.function = t_function;
  if (context != nullptr) {
    activity.device = context->device->ordinal;
    activity.context = static_cast<std::uint32_t>(context->id);
    activity.context_handle = driver().contexts.handle(context);
  }
  return activity;
}

simgpu_activity of_stream(int kind, const Stream* stream) {
  simgpu_activity activity = of_context(kind, stream->context);
  activity.stream = static_cast<std::uint32_t>(stream->id);
  return activity;
}

void tell(const simgpu_activity& activity) {
  for (const auto& slot : g_sinks)
    if (simgpu_activity_sink sink = slot.load(std::memory_order_acquire)) sink(&activity);
}

bool nobody_asks() {
  return !listening() || t_function == nullptr;
}

void describe_pool(simgpu_activity& activity, const Pool* pool) {
  activity.pool = reinterpret_cast<std::uint64_t>(driver().tables->pools.handle(pool));
  activity.pool_reserved = pool->reserved;
  activity.pool_used = pool->used;
  activity.pool_threshold = pool->release_threshold;
}

int memory_at(std::uint64_t address) {
  const auto found = registry().find(address);
  if (!found) return SIMGPU_MEMORY_HOST;
  switch (found->source) {
    case Source::kPinned:
    case Source::kRegistered:
      return SIMGPU_MEMORY_PINNED;
    case Source::kManaged:
      return SIMGPU_MEMORY_MANAGED;
    case Source::kArray:
      return SIMGPU_MEMORY_ARRAY;
    default:
      return SIMGPU_MEMORY_DEVICE;
  }
}

}  // namespace

ToldCall::ToldCall(const char* function)
    : function_(function), outer_correlation_(t_correlation), outer_function_(t_function) {
  t_function = function;
  if (outer_correlation_ == 0)
    t_correlation = g_next_correlation.fetch_add(1, std::memory_order_relaxed);
  tell(of_context(SIMGPU_CALL_BEGINS, current_context()));
}

ToldCall::~ToldCall() {
  simgpu_activity activity = of_context(SIMGPU_CALL_ENDS, current_context());
  activity.function = function_;
  activity.result = result;
  tell(activity);
  t_correlation = outer_correlation_;
  t_function = outer_function_;
}

void tell_memory(const Allocation& allocation, bool allocated, Stream* stream) {
  if (nobody_asks()) return;
  simgpu_activity activity =
      of_context(allocated ? SIMGPU_ALLOCATED : SIMGPU_RELEASED, allocation.context);
  activity.address = allocation.address;
  activity.size = allocation.size;
  switch (allocation.source) {
    case Source::kDevice:
    case Source::kPool:
      activity.memory = SIMGPU_MEMORY_DEVICE;
      break;
    case Source::kManaged:
      activity.memory = SIMGPU_MEMORY_MANAGED;
      break;
    case Source::kPinned:
      activity.memory = SIMGPU_MEMORY_PINNED;
      break;
    case Source::kArray:
      activity.memory = SIMGPU_MEMORY_ARRAY;
      break;
    default:
      return;  // CUPTI has no record for it
  }
  if (stream != nullptr) {
    activity.stream = static_cast<std::uint32_t>(stream->id);
    activity.asynchronous = 1;
  }
  if (allocation.pool != nullptr) describe_pool(activity, allocation.pool);
  tell(activity);
}

void tell_pool(const Pool* pool, int operation, std::uint64_t keep) {
  if (nobody_asks()) return;
  simgpu_activity activity = of_context(SIMGPU_POOL, current_context());
  activity.device = pool->device->ordinal;
  activity.operation = operation;
  activity.size = keep;
  describe_pool(activity, pool);
  tell(activity);
}

void tell_kernel(const Stream* stream, const char* name, const CUDA_KERNEL_NODE_PARAMS& launch,
                 int registers, std::uint64_t graph_node) {
  if (nobody_asks()) return;
  simgpu_activity activity = of_stream(SIMGPU_KERNEL, stream);
  activity.name = name;
  activity.grid[0] = launch.gridDimX;
  activity.grid[1] = launch.gridDimY;
  activity.grid[2] = launch.gridDimZ;
  activity.block[0] = launch.blockDimX;
  activity.block[1] = launch.blockDimY;
  activity.block[2] = launch.blockDimZ;
  activity.registers = static_cast<std::uint32_t>(registers);
  activity.shared_bytes = launch.sharedMemBytes;
  activity.graph_node = graph_node;
  tell(activity);
}

void tell_copy(const Stream* stream, std::uint64_t to, std::uint64_t from, std::uint64_t size,
               std::uint64_t graph_node) {
  if (nobody_asks()) return;
  simgpu_activity activity = of_stream(SIMGPU_COPY, stream);
  activity.address = to;
  activity.from = from;
  activity.size = size;
  activity.memory = memory_at(to);
  activity.from_memory = memory_at(from);
  activity.graph_node = graph_node;
  tell(activity);
}

void tell_set(const Stream* stream, std::uint64_t to, std::uint64_t size, unsigned value,
              std::uint64_t graph_node) {
  if (nobody_asks()) return;
  simgpu_activity activity = of_stream(SIMGPU_SET, stream);
  activity.address = to;
  activity.size = size;
  activity.value = value;
  activity.memory = memory_at(to);
  activity.graph_node = graph_node;
  tell(activity);
}

}  // namespace simgpu

int simgpu_add_activity_sink(simgpu_activity_sink sink) {
  using namespace simgpu;
  const std::lock_guard lock(g_sinks_mutex);
  for (auto& slot : g_sinks) {
    if (slot.load(std::memory_order_relaxed) != nullptr) continue;
    slot.store(sink, std::memory_order_release);
    g_listeners.fetch_add(1, std::memory_order_release);
    return 1;
  }
  return 0;
}

void simgpu_remove_activity_sink(simgpu_activity_sink sink) {
  using namespace simgpu;
  const std::lock_guard lock(g_sinks_mutex);
  for (auto& slot : g_sinks) {
    if (slot.load(std::memory_order_relaxed) != sink) continue;
    slot.store(nullptr, std::memory_order_release);
    g_listeners.fetch_sub(1, std::memory_order_release);
  }
}
