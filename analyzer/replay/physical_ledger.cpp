#include "replay/physical_ledger.h"

#include <algorithm>

namespace vramtrack {
namespace {

bool lies_in_pool(Memory memory) {
  return memory == Memory::pool || memory == Memory::graph;
}
bool lies_on_device(Memory memory) {
  return memory == Memory::device || memory == Memory::array || memory == Memory::none;
}

// Stands for the driver's own pool of graph memory, which has no handle.
constexpr uint64_t kGraphPool = ~uint64_t{0};

}  // namespace

void PhysicalLedger::apply(const Event& event, const Block& made) {
  switch (event.kind) {
    case EventKind::physical_alloc:
    case EventKind::segment_alloc:
      return allocate(event, made);
    case EventKind::physical_free_begin:
      return free_begin(event);
    case EventKind::physical_free_end:
      return free_end(event);
    case EventKind::segment_free:
      if (allocations_.at(event.address) != nullptr) {
        release(event.address, BlockListener::End::freed);
      } else if (runs_.holding(event.address) != nullptr) {
        unmap(event.address, event.size);
      } else {
        ++anomalies_.unknown_frees;
      }
      return;
    case EventKind::handle_create:
    case EventKind::handle_retain:  // one more reference to a handle that is there
      return create_handle(event, made);
    case EventKind::handle_release:
      return release_handle(event);
    case EventKind::map:
    case EventKind::segment_map:
      return map(event);
    case EventKind::unmap:
    case EventKind::segment_unmap:
      return unmap(event.address, event.size);
    case EventKind::address_reserve:
      reservations_.insert({.address = event.address, .size = event.size});
      return;
    case EventKind::address_free:
      reservations_.erase(event.address);
      return;
    case EventKind::pool_create:
      pools_.try_emplace(pool_of(event));
      return;
    case EventKind::pool_reserved:
      return set_pool(pool_of(event), [&](Pool& pool) { pool.reserved = event.size; });
    case EventKind::pool_destroy:
      return destroy_pool(event);
    case EventKind::import_open:
      uncounted_.insert(event.address);
      return;
    case EventKind::import_close:
      uncounted_.erase(event.address);
      return;
    case EventKind::context_create:
      contexts_[event.object] = event.device;
      return;
    case EventKind::context_destroy:
    case EventKind::device_reset:
      return end_context(event);
    case EventKind::module_load:
    case EventKind::module_unload:
      return module_event(event);
    default:
      return;
  }
}

// ---- allocations -------------------------------------------------------------------------------

uint64_t* PhysicalLedger::host_line(Memory memory) {
  switch (memory) {
    case Memory::managed:
      return &totals_.host.managed;
    case Memory::pinned:
      return &totals_.host.pinned;
    case Memory::registered:
      return &totals_.host.registered;
    case Memory::vmm_host:
      return &totals_.host.vmm_host;
    default:
      return nullptr;
  }
}

// The one place where an allocation enters the sums or leaves them.
void PhysicalLedger::count(const PhysicalAllocation& allocation, bool more) {
  const uint64_t bytes = more ? allocation.size : -allocation.size;
  if (uint64_t* line = host_line(allocation.memory)) {
    *line += bytes;
    return;
  }
  DeviceTotals& device = totals_.of(allocation.device);
  if (allocation.memory == Memory::module_data) {
    device.modules += bytes;
    return;
  }
  if (lies_in_pool(allocation.memory)) {
    set_pool({allocation.device, allocation.pool}, [&](Pool& pool) { pool.live += bytes; });
  } else {
    device.in_use += bytes;
  }
  (allocation.claimed ? device.reserved : device.direct) += bytes;
}

void PhysicalLedger::allocate(const Event& event, const Block& made) {
  if ((event.flags & kEventCaptured) != 0 || event.memory == Memory::imported ||
      event.memory == Memory::multicast) {
    uncounted_.insert(event.address);  // a node of a graph, or bytes that others count
    return;
  }
  if (event.size == 0) return;
  make_room(event.address, event.size);
  PhysicalAllocation allocation{made};
  allocation.context = event.extra;
  allocation.origin =
      lies_in_pool(event.memory) ? Block::Origin::stream_pool : Block::Origin::driver;
  if (lies_in_pool(event.memory)) {
    allocation.pool = event.memory == Memory::graph ? kGraphPool : pool_of(event).second;
  } else {
    allocation.pool = event.kind == EventKind::segment_alloc ? event.object : 0;
  }
  if (allocation.device < 0 && host_line(event.memory) == nullptr) {
    ++anomalies_.unknown_devices;
    allocation.device = 0;
  }
  allocation.claimed = event.kind == EventKind::segment_alloc;
  count(allocation, true);
  PhysicalAllocation& kept = allocations_.insert(allocation);
  if (!kept.claimed) observer_.direct_begun(kept);
}

// What is about to be overwritten is gone: either its free has begun and did not return yet, or we
// missed the free.
void PhysicalLedger::make_room(uint64_t address, uint64_t size) {
  while (PhysicalAllocation* old = allocations_.overlapping(address, size)) {
    if (old->freeing) {
      taken_over_.insert({old->address, old->freeing_thread});
    } else {
      ++anomalies_.overlapping_physical;
    }
    release(old->address, old->freeing ? BlockListener::End::freed : BlockListener::End::lost);
  }
}

void PhysicalLedger::release(uint64_t address, BlockListener::End end) {
  const PhysicalAllocation gone = *allocations_.at(address);
  count(gone, false);
  allocations_.erase(address);
  if (gone.claimed) {
    observer_.memory_gone(gone.address, gone.size);
  } else {
    observer_.direct_ended(gone, end);
  }
}

void PhysicalLedger::free_begin(const Event& event) {
  if (PhysicalAllocation* allocation = allocations_.at(event.address)) {
    allocation->freeing = true;
    allocation->freeing_thread = event.thread;
  }
}

void PhysicalLedger::free_end(const Event& event) {
  if (taken_over_.erase({event.address, event.thread}) != 0) return;
  PhysicalAllocation* allocation = allocations_.at(event.address);
  if (event.result != 0) {
    if (allocation != nullptr) allocation->freeing = false;  // refused: it is still there
    return;
  }
  if (allocation == nullptr) {
    if (uncounted_.erase(event.address) == 0 && event.address != 0) ++anomalies_.unknown_frees;
    return;
  }
  release(event.address, BlockListener::End::freed);
}

// ---- pools, contexts, modules ------------------------------------------------------------------

PhysicalLedger::PoolKey PhysicalLedger::pool_of(const Event& event) const {
  if (event.object == 0 || event.device >= 0) return {event.device, event.object};
  for (const auto& [key, pool] : pools_) {
    if (key.second == event.object) return key;
  }
  return {event.device, event.object};
}

void PhysicalLedger::set_pool(PoolKey key, const std::function<void(Pool&)>& change) {
  if (key.first < 0) key.first = 0;
  Pool& pool = pools_[key];
  DeviceTotals& device = totals_.of(key.first);
  device.in_use -= pool.held();
  change(pool);
  device.in_use += pool.held();
}

void PhysicalLedger::destroy_pool(const Event& event) {
  const PoolKey key = pool_of(event);
  release_all([&](const PhysicalAllocation& allocation) {
    return lies_in_pool(allocation.memory) && allocation.pool == key.second &&
           (key.first < 0 || allocation.device == key.first);
  });
  set_pool(key, [](Pool& pool) { pool.reserved = 0; });
  pools_.erase({std::max<int16_t>(key.first, 0), key.second});
}

template <class Doomed>
void PhysicalLedger::release_all(Doomed&& doomed) {
  std::vector<uint64_t> addresses;
  allocations_.for_each([&](const PhysicalAllocation& allocation) {
    if (doomed(allocation)) addresses.push_back(allocation.address);
  });
  for (const uint64_t address : addresses) release(address, BlockListener::End::freed);
}

// A context takes its allocations with it, a reset takes everything on the device. Where the event
// of an allocation did not name its context, it was the device's only one.
void PhysicalLedger::end_context(const Event& event) {
  if (event.kind == EventKind::device_reset) {
    release_all(
        [&](const PhysicalAllocation& allocation) { return allocation.device == event.device; });
    std::erase_if(contexts_, [&](const auto& entry) { return entry.second == event.device; });
    return;
  }
  const auto found = contexts_.find(event.object);
  const int16_t device = found == contexts_.end() ? event.device : found->second;
  const bool only_one = std::count_if(contexts_.begin(), contexts_.end(), [&](const auto& entry) {
                          return entry.second == device;
                        }) <= 1;
  release_all([&](const PhysicalAllocation& allocation) {
    if (lies_in_pool(allocation.memory)) return false;  // pools outlive contexts
    return allocation.context != 0 ? allocation.context == event.object
                                   : only_one && allocation.device == device;
  });
  contexts_.erase(event.object);
}

void PhysicalLedger::module_event(const Event& event) {
  const auto known = modules_.find(event.object);
  if (known != modules_.end()) {
    totals_.of(known->second.first).modules -= known->second.second;
    modules_.erase(known);
  }
  if (event.kind == EventKind::module_load) {
    modules_[event.object] = {event.device, event.size};
    totals_.of(event.device).modules += event.size;
  }
}

// ---- claims ------------------------------------------------------------------------------------

void PhysicalLedger::claim_allocation(PhysicalAllocation& allocation) {
  observer_.direct_ended(allocation, BlockListener::End::became_segment);
  count(allocation, false);
  allocation.claimed = true;
  count(allocation, true);
}

bool PhysicalLedger::claim(const Block& block) {
  if (PhysicalAllocation* allocation = allocations_.holding(block.address)) {
    if (block.end() > allocation->end() || block.device != allocation->device ||
        host_line(allocation->memory) != nullptr)
      return false;
    if (!allocation->claimed) {
      claim_allocation(*allocation);
      allocation->stream = block.stream;
      if (allocation->pool == 0) allocation->pool = block.pool;
      allocation->flags |= block.flags & kEventSmallPool;
    }
    allocation->flags |= block.flags & kEventCaptured;
    return true;
  }
  Run* run = runs_.holding(block.address);
  if (run == nullptr || block.end() > run->address + run->size || block.device != run->device)
    return false;
  if (!run->claimed) {
    run->stream = block.stream;
    run->pool = block.pool;
    run->flags |= block.flags & kEventSmallPool;
    claim_run(*run);
  }
  run->flags |= block.flags & kEventCaptured;
  return true;
}

// ---- reading -----------------------------------------------------------------------------------

Block* PhysicalLedger::find_direct(uint64_t address) {
  if (PhysicalAllocation* allocation = allocations_.holding(address)) {
    return allocation->claimed ? nullptr : allocation;
  }
  if (const Mapping* mapping = mappings_.holding(address)) {
    const auto handle = handles_.find(mapping->handle);
    if (handle != handles_.end() && !handle->second.claimed) return &handle->second;
  }
  return nullptr;
}

void PhysicalLedger::for_each_direct(int16_t device,
                                     const std::function<void(const Block&)>& visit) const {
  const auto counts = [device](const Block& block) {
    return block.device == device && (lies_on_device(block.memory) || lies_in_pool(block.memory));
  };
  allocations_.for_each([&](const PhysicalAllocation& allocation) {
    if (!allocation.claimed && counts(allocation)) visit(allocation);
  });
  for (const auto& [number, handle] : handles_) {
    if (!handle.claimed && counts(handle)) visit(handle);
  }
}

void PhysicalLedger::for_each_host(const std::function<void(const Block&)>& visit) const {
  const auto counts = [](const Block& block) {
    return block.memory == Memory::managed || block.memory == Memory::pinned ||
           block.memory == Memory::registered || block.memory == Memory::vmm_host;
  };
  allocations_.for_each([&](const PhysicalAllocation& allocation) {
    if (counts(allocation)) visit(allocation);
  });
  for (const auto& [number, handle] : handles_) {
    if (counts(handle)) visit(handle);
  }
}

void PhysicalLedger::append_segments(int16_t device, std::vector<Segment>& segments) const {
  allocations_.for_each([&](const PhysicalAllocation& allocation) {
    if (!allocation.claimed || allocation.device != device) return;
    segments.push_back({.address = allocation.address,
                        .size = allocation.size,
                        .stream = allocation.stream,
                        .pool = allocation.pool,
                        .sequence = allocation.sequence,
                        .stack = allocation.stack,
                        .device = device,
                        .expandable = (allocation.flags & kEventExpandable) != 0,
                        .small_pool = (allocation.flags & kEventSmallPool) != 0,
                        .captured = (allocation.flags & kEventCaptured) != 0});
  });
  runs_.for_each([&](const Run& run) {
    if (!run.claimed || run.device != device) return;
    segments.push_back({.address = run.address,
                        .size = run.size,
                        .stream = run.stream,
                        .pool = run.pool,
                        .sequence = run.sequence,
                        .stack = run.stack,
                        .device = device,
                        .expandable = true,
                        .small_pool = (run.flags & kEventSmallPool) != 0,
                        .captured = (run.flags & kEventCaptured) != 0});
  });
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
}

}  // namespace vramtrack
