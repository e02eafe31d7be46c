// A lock-free map from 64-bit keys to small values that only ever grows.
//
// Open addressing in up to four levels, each 8 times the one before and mapped when it is first
// needed; nothing is ever moved, so that a reader needs no lock and a fork in the middle of an
// insertion leaves nothing behind that could block the child.
#ifndef VRAMTRACK_TRACER_STACK_INTERN_TABLE_H
#define VRAMTRACK_TRACER_STACK_INTERN_TABLE_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "record/pages.h"

namespace vramtrack {

// Value: an unsigned integer; 0 means that nobody has set it yet.
template <typename Value>
class InternTable {
 public:
  struct Slot {
    std::atomic<uint64_t> key;  // 0: free
    std::atomic<Value> value;
  };
  static_assert(sizeof(Slot) == 16 && std::atomic<Value>::is_always_lock_free);

  constexpr InternTable() = default;

  // The slot of `key` (not 0), inserted with value 0 where it is new: `inserted` then tells the one
  // thread that did it. nullptr where the table is full.
  Slot* find_or_insert(uint64_t key, bool& inserted) {
    inserted = false;
    for (unsigned level = 0; level < kLevels; ++level) {
      Slot* slots = level_slots(level);
      if (slots == nullptr) return nullptr;
      const size_t mask = level_size(level) - 1;
      size_t at = scatter(key) & mask;
      for (unsigned probe = 0; probe < kProbes; ++probe, at = (at + 1) & mask) {
        uint64_t seen = slots[at].key.load(std::memory_order_acquire);
        if (seen == 0 && slots[at].key.compare_exchange_strong(seen, key)) {
          inserted = true;
          return &slots[at];
        }
        if (seen == key) return &slots[at];
      }
    }
    return nullptr;
  }

  // The slot of `key`, nullptr where it was never inserted.
  Slot* find(uint64_t key) {
    for (unsigned level = 0; level < kLevels; ++level) {
      Slot* slots = levels_[level].load(std::memory_order_acquire);
      if (slots == nullptr) return nullptr;
      const size_t mask = level_size(level) - 1;
      size_t at = scatter(key) & mask;
      for (unsigned probe = 0; probe < kProbes; ++probe, at = (at + 1) & mask) {
        const uint64_t seen = slots[at].key.load(std::memory_order_acquire);
        if (seen == key) return &slots[at];
        if (seen == 0) return nullptr;
      }
    }
    return nullptr;
  }

  // Forgets everything. Only while no other thread can look: in a child right after fork.
  void clear() {
    for (unsigned level = 0; level < kLevels; ++level) {
      Slot* slots = levels_[level].load(std::memory_order_relaxed);
      if (slots != nullptr) madvise(slots, level_size(level) * sizeof(Slot), MADV_DONTNEED);
    }
  }

 private:
  static constexpr unsigned kLevels = 4;
  static constexpr unsigned kProbes = 16;

  static constexpr size_t level_size(unsigned level) { return size_t{1} << (13 + 3 * level); }
  static constexpr uint64_t scatter(uint64_t key) {
    key *= 0x9e3779b97f4a7c15ULL;
    return key ^ (key >> 32);
  }

  Slot* level_slots(unsigned level) {
    Slot* slots = levels_[level].load(std::memory_order_acquire);
    if (slots != nullptr) return slots;
    const size_t bytes = level_size(level) * sizeof(Slot);
    auto* fresh = static_cast<Slot*>(map_pages(bytes));
    if (fresh == nullptr) return nullptr;
    if (levels_[level].compare_exchange_strong(slots, fresh)) return fresh;
    unmap_pages(fresh, bytes);
    return slots;
  }

  std::atomic<Slot*> levels_[kLevels] = {};
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_INTERN_TABLE_H
