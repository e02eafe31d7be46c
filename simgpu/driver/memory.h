// The registry of everything that has an address: device, managed, pooled, mapped, imported memory
// and the host ranges that were pinned or registered.
#ifndef SIMGPU_DRIVER_MEMORY_H
#define SIMGPU_DRIVER_MEMORY_H

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include "driver.h"

namespace simgpu {

struct VmmHandle;

enum class Source : std::uint8_t {
  kDevice,
  kManaged,
  kArray,
  kPool,
  kVmmMapping,
  kIpcImport,
  kModule,
  kGraph,
  kPinned,
  kRegistered,
};

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Source source = Source::kDevice;
  Context* context = nullptr;  // that made it; its end releases the memory
  Device* device = nullptr;
  unsigned flags = 0;
  std::uint64_t buffer_id = 0;
  Pool* pool = nullptr;
  VmmHandle* vmm = nullptr;
  std::uint64_t vmm_offset = 0;
  GraphNode* graph_node = nullptr;  // that allocates it at every launch
  int opened = 1;                   // IPC imports count
  bool sync_memops = false;
  bool released_by_graph = false;

  bool is_host() const { return source == Source::kPinned || source == Source::kRegistered; }
  // Whether the bytes are real memory of this process.
  bool is_real() const { return is_host() || source == Source::kManaged; }
};

class Registry {
 public:
  void add(const Allocation& allocation);
  // The allocation that begins at `address`, where `wanted` accepts it.
  template <class Wanted>
  std::optional<Allocation> remove(std::uint64_t address, Wanted wanted) {
    std::unique_lock lock(mutex_);
    auto found = by_address_.find(address);
    if (found == by_address_.end() || !wanted(found->second)) return std::nullopt;
    Allocation allocation = found->second;
    by_address_.erase(found);
    return allocation;
  }
  std::optional<Allocation> find(std::uint64_t address) const;
  // Whether the whole range lies in living allocations (mappings may adjoin).
  bool covers(std::uint64_t address, std::uint64_t size) const;
  template <class Change>
  bool change(std::uint64_t address, Change apply) {
    std::unique_lock lock(mutex_);
    auto found = by_address_.upper_bound(address);
    if (found == by_address_.begin()) return false;
    --found;
    if (address - found->first >= found->second.size) return false;
    apply(found->second);
    return true;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    std::shared_lock lock(mutex_);
    for (const auto& [address, allocation] : by_address_) visit(allocation);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> by_address_;
};

Registry& registry();

// Device memory with an address of its own, charged and registered; 0 in `address` on failure.
CUresult allocate_device(Context* context, std::uint64_t size, Kind kind, Source source,
                         const char* operation, std::uint64_t& address);
// cuMemAllocManaged, and what a managed variable of a module takes.
CUresult allocate_managed(CUdeviceptr* pointer, std::size_t size, unsigned flags);
// The opposite, for what was removed from the registry.
void release(const Allocation& allocation, const char* operation);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_MEMORY_H
