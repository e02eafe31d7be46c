// Memory pools: chunks of the device out of which stream-ordered allocations are cut.
#ifndef SIMGPU_DRIVER_POOL_H
#define SIMGPU_DRIVER_POOL_H

#include <cstdint>
#include <map>
#include <mutex>

#include "memory.h"

namespace simgpu {

struct PoolChunk {
  std::uint64_t size = 0;
  std::uint64_t used = 0;
  std::map<std::uint64_t, std::uint64_t> free;  // start -> size
};

struct Pool {
  Device* device = nullptr;
  bool is_default = false;
  bool imported = false;  // from another process: holds nothing of this device
  unsigned handle_types = 0;
  std::uint64_t maximum = 0;  // 0: none
  std::mutex mutex;
  bool destroyed = false;
  std::uint64_t release_threshold = 0;
  int reuse_follow_events = 1, reuse_opportunistic = 1, reuse_internal = 1;
  std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  std::map<std::uint64_t, PoolChunk> chunks;
  std::map<int, CUmemAccess_flags> access;
};

CUresult pool_allocate(Pool* pool, Context* context, std::uint64_t size, const char* operation,
                       std::uint64_t& address);
void trim_pool(Pool* pool, std::uint64_t keep, const char* operation);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_POOL_H
