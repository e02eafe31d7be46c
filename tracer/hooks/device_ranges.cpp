#include "hooks/device_ranges.h"

#include <algorithm>

namespace vramtrack {

constinit uint64_t g_granules[kGranuleWords];

namespace {

bool tells_of_memory(const Event& event) {
  switch (event.kind) {
    case EventKind::map:
    case EventKind::import_open:
      return true;
    case EventKind::physical_alloc:
      return event.memory != Memory::pinned && event.memory != Memory::registered &&
             event.memory != Memory::array;
    default:
      return false;
  }
}

}  // namespace

void note_device_range(const Event& event) {
  if (!tells_of_memory(event) || event.size == 0) return;
  const uint64_t first = event.address >> kGranuleBits;
  uint64_t last = (event.address + (event.size - 1)) >> kGranuleBits;
  last = std::min(last, uint64_t{kGranuleWords * 64 - 1});
  for (uint64_t granule = first; granule <= last; ++granule) {
    const std::atomic_ref<uint64_t> word(g_granules[granule / 64]);
    const uint64_t bit = uint64_t{1} << (granule % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0)
      word.fetch_or(bit, std::memory_order_relaxed);
  }
}

}  // namespace vramtrack
