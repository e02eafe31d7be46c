// What each thread of ring_writer does: block number `slot` comes and goes in a fixed order, so
// that the live set after any number of operations is known without looking at a trace.
#ifndef VRAMTRACK_TESTS_TRACER_RING_SCRIPT_H
#define VRAMTRACK_TESTS_TRACER_RING_SCRIPT_H

#include <cstdint>
#include <map>

namespace ring_script {

inline constexpr uint64_t kSlots = 300;  // blocks per thread, about half of them live
inline constexpr uint64_t kSlotBytes = 4096;
inline constexpr uint64_t kPerStep = 1000;  // operations of thread 1
inline constexpr uint64_t kEmptySegment = uint64_t{99} << 32;
inline constexpr uint64_t kEmptySegmentBytes = 1 << 21;
inline constexpr uint64_t kKeptSlot = kSlots;  // made first, labelled, never freed

constexpr uint64_t base_of(uint64_t thread) {
  return thread << 32;
}
constexpr uint64_t slot_of(uint64_t thread, uint64_t operation) {
  uint64_t z = (thread << 40) + operation * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return (z ^ (z >> 31)) % kSlots;
}
constexpr uint64_t size_of(uint64_t operation) {
  return 512 * (1 + operation % 8);
}

// Address -> size, after so many operations of the thread.
inline std::map<uint64_t, uint64_t> live_after(uint64_t thread, uint64_t operations) {
  std::map<uint64_t, uint64_t> live;
  live[base_of(thread) + kKeptSlot * kSlotBytes] = kSlotBytes;
  for (uint64_t i = 1; i <= operations; ++i) {
    const uint64_t address = base_of(thread) + slot_of(thread, i) * kSlotBytes;
    if (live.erase(address) == 0) live[address] = size_of(i);
  }
  return live;
}

}  // namespace ring_script

#endif  // VRAMTRACK_TESTS_TRACER_RING_SCRIPT_H
