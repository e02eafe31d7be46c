// Virtual memory management: handles of physical memory and what is mapped of them.
#ifndef SIMGPU_DRIVER_VMM_H
#define SIMGPU_DRIVER_VMM_H

#include <cstdint>
#include <map>
#include <mutex>

#include "memory.h"

namespace simgpu {

constexpr std::uint64_t kVmmGranularity = std::uint64_t{2} << 20;

struct VmmHandle {
  Device* device = nullptr;  // nullptr: host memory
  std::uint64_t size = 0;
  CUmemAllocationProp properties{};
  bool imported = false;
  // References and mappings keep the memory; guarded by VmmState::mutex.
  int references = 1;
  int mappings = 0;
  // Where the contents of the memory live: the same bytes show at every mapping.
  std::uint64_t contents_address = 0;
};

struct VmmState {
  std::mutex mutex;
  HandleTable<VmmHandle, CUmemGenericAllocationHandle> handles;
  std::map<std::uint64_t, std::uint64_t> reservations;
  std::map<std::uint64_t, std::map<int, CUmemAccess_flags>> access;  // by start of a mapping
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_VMM_H
