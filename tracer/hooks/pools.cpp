#include "hooks/pools.h"

#include <atomic>

#include "hooks/devices.h"
#include "hooks/real_functions.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

struct Pool {
  std::atomic<uint64_t> handle{0};  // 0: free entry
  std::atomic<uint64_t> reserved{0};
  std::atomic<uint32_t> epoch{0};
  std::atomic<int16_t> device{kNoDevice};
};

constexpr size_t kMaxPools = 256;
constexpr int16_t kMaxDevices = 64;
// Objects that cannot be handles: the graph memory of device n.
constexpr uint64_t kGraphPool = uint64_t{1} << 63;

constinit Pool g_pools[kMaxPools];
constinit std::atomic<size_t> g_pool_limit{0};  // entries beyond it were never used
constinit std::atomic<bool> g_graph_memory{false};

Pool* find_pool(uint64_t handle) {
  const size_t limit = g_pool_limit.load(std::memory_order_acquire);
  for (size_t i = 0; i < limit; ++i) {
    Pool& pool = g_pools[i];
    if (pool.handle.load(std::memory_order_relaxed) == handle &&
        pool.epoch.load(std::memory_order_relaxed) == recording_epoch())
      return &pool;
  }
  return nullptr;
}

// A free entry, or one of before a fork. Two threads that meet a pool at once may both add it,
// which records it twice; a reader takes the second as no news.
Pool* add_pool(uint64_t handle, int16_t device) {
  for (size_t i = 0; i < kMaxPools; ++i) {
    Pool& pool = g_pools[i];
    uint64_t seen = pool.handle.load(std::memory_order_relaxed);
    const bool stale = pool.epoch.load(std::memory_order_relaxed) != recording_epoch();
    if (seen != 0 && !stale) continue;
    if (!pool.handle.compare_exchange_strong(seen, handle)) continue;
    pool.device.store(device, std::memory_order_relaxed);
    pool.reserved.store(0, std::memory_order_relaxed);
    pool.epoch.store(recording_epoch(), std::memory_order_relaxed);
    size_t limit = g_pool_limit.load(std::memory_order_relaxed);
    while (limit < i + 1 &&
           !g_pool_limit.compare_exchange_weak(limit, i + 1, std::memory_order_release)) {
    }
    return &pool;
  }
  return nullptr;
}

void record_creation(const Call& call, uint64_t handle, int16_t device) {
  see_device(device);
  Event event{
      .kind = EventKind::pool_create, .memory = Memory::device, .device = device, .object = handle};
  emit(call, event);
}

void record_reserved(const Call& call, Pool& pool, uint64_t reserved) {
  if (pool.reserved.exchange(reserved, std::memory_order_relaxed) == reserved) return;
  Event event{.kind = EventKind::pool_reserved,
              .device = pool.device.load(std::memory_order_relaxed),
              .size = reserved,
              .object = pool.handle.load(std::memory_order_relaxed)};
  emit_without_stack(call, event);
}

void ask(const Call& call, Pool& pool) {
  const uint64_t handle = pool.handle.load(std::memory_order_relaxed);
  const DriverCalls& driver = driver_calls();
  const RelaxedCapture relaxed;
  cuuint64_t reserved = 0;
  if ((handle & kGraphPool) != 0) {
    if (driver.cuDeviceGetGraphMemAttribute == nullptr ||
        driver.cuDeviceGetGraphMemAttribute(static_cast<CUdevice>(handle & ~kGraphPool),
                                            CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                            &reserved) != CUDA_SUCCESS)
      return;
  } else if (driver.cuMemPoolGetAttribute == nullptr ||
             driver.cuMemPoolGetAttribute(reinterpret_cast<CUmemoryPool>(handle),
                                          CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                          &reserved) != CUDA_SUCCESS) {
    return;
  }
  record_reserved(call, pool, reserved);
}

}  // namespace

void see_pool(const Call& call, CUmemoryPool pool, int16_t device) {
  const auto handle = reinterpret_cast<uint64_t>(pool);
  if (pool == nullptr || find_pool(handle) != nullptr) return;
  record_creation(call, handle, device);
  add_pool(handle, device);
}

void update_pool(const Call& call, CUmemoryPool pool) {
  if (Pool* known = find_pool(reinterpret_cast<uint64_t>(pool))) ask(call, *known);
}

void update_all_pools(const Call& call) {
  const size_t limit = g_pool_limit.load(std::memory_order_acquire);
  for (size_t i = 0; i < limit; ++i) {
    Pool& pool = g_pools[i];
    if (pool.handle.load(std::memory_order_relaxed) != 0 &&
        pool.epoch.load(std::memory_order_relaxed) == recording_epoch())
      ask(call, pool);
  }
}

void forget_pool(CUmemoryPool pool) {
  if (Pool* known = find_pool(reinterpret_cast<uint64_t>(pool)))
    known->handle.store(0, std::memory_order_relaxed);
}

void expect_graph_memory() {
  g_graph_memory.store(true, std::memory_order_relaxed);
}

void update_graph_memory(const Call& call, int16_t device) {
  if (!g_graph_memory.load(std::memory_order_relaxed) || device < 0 || device >= kMaxDevices)
    return;
  const uint64_t handle = kGraphPool | static_cast<uint64_t>(device);
  Pool* pool = find_pool(handle);
  if (pool == nullptr) {
    record_creation(call, handle, device);
    pool = add_pool(handle, device);
  }
  if (pool != nullptr) ask(call, *pool);
}

}  // namespace vramtrack
