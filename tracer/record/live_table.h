// What is live, for ring recording: the events that made it, found by what they made. Only a ring
// has such a table.
//
// Hash chains over entries that never move, in pages of our own: nothing is ever rehashed or
// copied, so that an event costs the same after a day as at the start. Guarded by the ring's lock.
#ifndef VRAMTRACK_TRACER_RECORD_LIVE_TABLE_H
#define VRAMTRACK_TRACER_RECORD_LIVE_TABLE_H

#include <vramtrack/trace_codec.h>

namespace vramtrack {

// What a key is the number of. Different kinds of things may lie at one address.
enum class Carried : uint8_t {
  none = 0,
  block,         // address
  physical,      // address of a driver's allocation
  mapping,       // address: a view of VMM memory, whose own events are kept for good
  label,         // address
  pool,          // handle: its newest reserved size
  phase,         // thread and depth
  step,          // 0: the newest step
  first_sample,  // device
  last_sample,   // device
  process_sample,
};

struct LiveEntry {
  CarriedEvent made;
  uint64_t end_sequence = 0;  // a free that has begun: of a pending block, or in the driver
  uint64_t end_time_ns = 0;
  uint32_t end_thread = 0;
  uint32_t written = 0;           // generation whose snapshot has it already
  uint32_t index = 0;             // its own
  uint32_t next = 0;              // in the chain, or of the free ones; index + 1
  uint64_t segment_sequence = 0;  // of the first block that was cut out of this memory, 0 none
  Carried kind = Carried::none;
  bool kernel_due = false;  // its thread has launched no kernel since
};

class LiveTable {
 public:
  LiveEntry* find(Carried kind, uint64_t key);
  // A new entry; nullptr where there is no memory. Its key must not be there.
  LiveEntry* insert(Carried kind, const CarriedEvent& made);
  void erase(const LiveEntry& entry);

  // Entries by index, below limit(); those that are free have kind none.
  [[nodiscard]] LiveEntry& at(uint32_t index);
  [[nodiscard]] uint32_t limit() const { return limit_; }
  [[nodiscard]] uint32_t size() const { return size_; }

  void clear();  // gives all memory back

 private:
  static constexpr uint32_t kBuckets = 1U << 18;
  static constexpr uint32_t kPerSegment = 1U << 14;
  static constexpr uint32_t kMostSegments = 1U << 10;  // 16 million entries

  [[nodiscard]] uint32_t* bucket(Carried kind, uint64_t key);
  uint32_t take_free();

  uint32_t* buckets_ = nullptr;
  LiveEntry* segments_[kMostSegments] = {};
  uint32_t limit_ = 0;
  uint32_t size_ = 0;
  uint32_t free_ = 0;  // index + 1
};

// The number under which the table knows what an event made.
uint64_t key_of(Carried kind, const Event& event);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_LIVE_TABLE_H
