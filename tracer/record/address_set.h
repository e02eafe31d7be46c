// A set of addresses: lock-free, of a fixed cost, in pages of our own.
//
// Open addressing in levels, each 8 times the one before and mapped when it is first needed. What
// is erased leaves a mark that the next insertion reuses, so that the set takes room for the most
// addresses it ever held around one place, not for all that were ever in it.
//
// The danger: two threads that insert or erase the same address at once. The caller's allocator
// hands an address to one thread at a time, and that is enough.
#ifndef VRAMTRACK_TRACER_RECORD_ADDRESS_SET_H
#define VRAMTRACK_TRACER_RECORD_ADDRESS_SET_H

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "record/pages.h"

namespace vramtrack {

class AddressSet {
 public:
  constexpr AddressSet() = default;

  // False where there is no room. The address must not be in the set.
  bool insert(uint64_t address) {
    for (unsigned level = 0; level < kLevels; ++level) {
      std::atomic<uint64_t>* slots = level_slots(level);
      if (slots == nullptr) return false;
      for (unsigned probe = 0; probe < kProbes; ++probe) {
        std::atomic<uint64_t>& slot = slots[place(level, address, probe)];
        uint64_t seen = slot.load(std::memory_order_relaxed);
        if (seen <= kErased && slot.compare_exchange_strong(seen, address)) return true;
      }
    }
    return false;
  }

  // Whether it was there.
  bool erase(uint64_t address) {
    for (unsigned level = 0; level < kLevels; ++level) {
      std::atomic<uint64_t>* slots = levels_[level].load(std::memory_order_acquire);
      if (slots == nullptr) return false;
      for (unsigned probe = 0; probe < kProbes; ++probe) {
        std::atomic<uint64_t>& slot = slots[place(level, address, probe)];
        const uint64_t seen = slot.load(std::memory_order_relaxed);
        if (seen == kFree) return false;  // it would have gone here
        if (seen != address) continue;
        slot.store(kErased, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  // Only while no other thread can look: in a child right after fork.
  void clear() {
    for (unsigned level = 0; level < kLevels; ++level) {
      std::atomic<uint64_t>* slots = levels_[level].load(std::memory_order_relaxed);
      if (slots != nullptr) madvise(slots, level_size(level) * sizeof *slots, MADV_DONTNEED);
    }
  }

 private:
  static constexpr uint64_t kFree = 0;
  static constexpr uint64_t kErased = 1;  // no allocator hands this out
  static constexpr unsigned kLevels = 5;
  static constexpr unsigned kProbes = 16;

  static constexpr size_t level_size(unsigned level) { return size_t{1} << (12 + 3 * level); }
  static constexpr size_t place(unsigned level, uint64_t address, unsigned probe) {
    uint64_t h = address * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 32;
    return (h + probe) & (level_size(level) - 1);
  }

  std::atomic<uint64_t>* level_slots(unsigned level) {
    std::atomic<uint64_t>* slots = levels_[level].load(std::memory_order_acquire);
    if (slots != nullptr) return slots;
    const size_t bytes = level_size(level) * sizeof *slots;
    auto* fresh = static_cast<std::atomic<uint64_t>*>(map_pages(bytes));
    if (fresh == nullptr) return nullptr;
    if (levels_[level].compare_exchange_strong(slots, fresh)) return fresh;
    unmap_pages(fresh, bytes);
    return slots;
  }

  std::atomic<std::atomic<uint64_t>*> levels_[kLevels] = {};
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_ADDRESS_SET_H
