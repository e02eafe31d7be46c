// Feeds a MemoryState with events made by hand.
#ifndef VRAMTRACK_TESTS_REPLAY_BUILDER_H
#define VRAMTRACK_TESTS_REPLAY_BUILDER_H

#include "replay/state.h"

namespace vramtrack::test {

inline constexpr uint64_t MiB = 1024 * 1024;

class Builder {
 public:
  MemoryState state;

  // Numbers and times count up by themselves.
  uint64_t apply(Event event) {
    event.sequence = ++sequence_;
    event.time_ns = sequence_ * 1000;
    state.apply(event);
    return sequence_;
  }
  uint64_t alloc(uint64_t address, uint64_t size, Memory memory = Memory::device) {
    return apply({.kind = EventKind::physical_alloc,
                  .memory = memory,
                  .device = 0,
                  .address = address,
                  .size = size});
  }
  void free_begin(uint64_t address, uint32_t thread = 0) {
    apply({.kind = EventKind::physical_free_begin, .thread = thread, .address = address});
  }
  void free_end(uint64_t address, uint32_t thread = 0, int32_t result = 0) {
    apply({.kind = EventKind::physical_free_end,
           .thread = thread,
           .address = address,
           .result = result});
  }
  void free(uint64_t address) {
    free_begin(address);
    free_end(address);
  }
  uint64_t block(uint64_t address, uint64_t size, uint64_t requested = 0) {
    return apply({.kind = EventKind::block_alloc,
                  .device = 0,
                  .address = address,
                  .size = size,
                  .requested = requested});
  }
  void free_block(uint64_t address, uint32_t flags = 0) {
    apply({.kind = EventKind::block_free, .device = 0, .address = address, .flags = flags});
  }
  void create(uint64_t handle, uint64_t size) {
    apply({.kind = EventKind::handle_create,
           .memory = Memory::device,
           .device = 0,
           .size = size,
           .object = handle});
  }
  void release(uint64_t handle) { apply({.kind = EventKind::handle_release, .object = handle}); }
  void map(uint64_t address, uint64_t size, uint64_t handle) {
    apply({.kind = EventKind::map, .address = address, .size = size, .object = handle});
  }
  void unmap(uint64_t address, uint64_t size) {
    apply({.kind = EventKind::unmap, .address = address, .size = size});
  }

  [[nodiscard]] const DeviceTotals& totals(int16_t device = 0) const {
    return state.totals(device);
  }
  [[nodiscard]] uint64_t anomalies() const {
    const Anomalies& a = state.anomalies();
    return a.unknown_frees + a.overlapping_blocks + a.overlapping_physical +
           a.blocks_without_segment + a.blocks_lost + a.witness_allocated_wrong +
           a.witness_reserved_wrong + a.unknown_devices;
  }

 private:
  uint64_t sequence_ = 0;
};

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_REPLAY_BUILDER_H
