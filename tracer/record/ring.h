// Ring recording: the last events of a job that runs for days, and what was live when they begin.
//
//   area 0      area 1      area 2      area 3
//   gen 5       gen 6       gen 3       gen 4        gen 6 is being written, over gen 2
//   S E E E     S E E ..    S E E E     S E E E      S: the live set when the generation began
//
// Sealed chunks of events go to the current area. When it is full the oldest area is overwritten,
// beginning with the live set, which is kept in a table for the purpose (carry.h). The live set is
// not written in one go, which would hold up the host, but a few entries with each event: what is
// freed meanwhile is written first, and what is new is left out, so that all parts together are the
// live set at the instant at which the generation began.
//
// The danger: everything here happens under one lock of the process, taken for each record. It is
// tried for a bounded time, never waited for beyond; a child of a fork begins with a lock that is
// free and an empty table.
#ifndef VRAMTRACK_TRACER_RECORD_RING_H
#define VRAMTRACK_TRACER_RECORD_RING_H

#include <vramtrack/trace_format.h>

#include <cstddef>

#include "record/live_table.h"

namespace vramtrack {

inline constexpr uint32_t kRingAreas = 4;
inline constexpr uint64_t kLeastRingBytes = 1024 * 1024;

bool ring_on();

// Held for each record that is written; nothing at all without a ring.
class RingLock {
 public:
  RingLock();
  ~RingLock();
  RingLock(const RingLock&) = delete;
  RingLock& operator=(const RingLock&) = delete;

  // False: somebody else holds it and does not get to run. What was to be written is lost.
  [[nodiscard]] bool held() const { return held_; }

 private:
  bool held_ = true;
};

// With each file, before it has its magic. False where the ring cannot be written.
bool ring_start();
// At the end of the process: completes the live set that is being written.
void ring_finish();

// All below under the lock.

// Writes a sealed chunk of events to the current area, or to the next.
bool ring_append(const void* chunk, size_t bytes);

// Before an entry changes or goes: the snapshot that is being written may need it as it was.
void ring_save(LiveEntry& entry);
// After each event: writes a few entries of the snapshot.
void ring_advance();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_RING_H
