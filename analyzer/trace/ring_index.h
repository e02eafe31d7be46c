// What a ring recording still holds: which of its areas belong together, and where to begin.
//
//   area    0      1      2      3
//   gen     5      6      3      4     3 4 5 6 follow each other; the beginning is the oldest
//                                      whose snapshot is complete
//
// Behind the newest frame of an area lies what it overwrites: frames of an older generation, cut
// anywhere. They are not damage.
#ifndef VRAMTRACK_ANALYZER_TRACE_RING_INDEX_H
#define VRAMTRACK_ANALYZER_TRACE_RING_INDEX_H

#include <vramtrack/trace_codec.h>

#include <vector>

#include "trace/file_bytes.h"

namespace vramtrack {

struct RingFrame {
  uint64_t body_offset = 0;
  FrameHeader header{};
};

// One area's content.
struct RingGeneration {
  uint32_t number = 0;
  bool complete = false;  // all parts of its snapshot are there
  uint64_t sequence = 0;  // of the first event after the snapshot
  uint64_t time_ns = 0;
  std::vector<RingFrame> snapshot;
  std::vector<RingFrame> chunks;
};

// The generations from the beginning to the newest, in order. Empty where no area can be read.
std::vector<RingGeneration> read_ring(const FileBytes& file, const RingHeader& ring);

// The carried records in a generation's snapshot; those that cannot be read are left out, and
// `complete` is cleared.
std::vector<CarriedEvent> read_snapshot(const FileBytes& file, RingGeneration& generation);

// The unpacked body of a frame. False where it cannot be read or its checksum differs.
bool unpack_frame(const FileBytes& file, const RingFrame& frame, std::vector<uint8_t>& out);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_RING_INDEX_H
