// What a snapshot does not say outright: the state in which its trace begins, and how large the
// block behind each request was.
//
// The final segments are known, the trace is known, so the beginning follows by walking the trace
// backwards: an allocation takes its block away, a free brings it back. Walking forwards again, the
// size of each block follows from the free space it was cut from and the allocator's rule for
// cutting (allocator_settings.h), because an allocation always takes the front of a free range.
#ifndef VRAMTRACK_ANALYZER_IMPORT_HISTORY_H
#define VRAMTRACK_ANALYZER_IMPORT_HISTORY_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "import/allocator_settings.h"
#include "import/snapshot.h"

namespace vramtrack {

struct HistorySegment {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t pool = 0;
  StackId stack = 0;
  bool small_pool = false;
  bool expandable = false;
};

struct HistoryBlock {
  uint64_t address = 0;
  uint64_t size = 0;  // 0 while unknown
  uint64_t requested = 0;
  uint64_t stream = 0;
  StackId stack = 0;  // 0: allocated before the trace begins, freed in it; nobody knows the line
  bool pending = false;
  bool size_guessed = false;  // at least this large
};

// Counts of what did not fit together, and of how sizes were found.
struct HistoryFacts {
  uint64_t alloc_without_block = 0;  // an allocation that neither lives at the end nor is freed
  uint64_t free_of_live_block = 0;   // a free of a block that lives at the end or is freed again
  uint64_t outside_segments = 0;     // a block event whose address lies in no segment
  uint64_t segment_mismatches = 0;   // segment events that contradict the final segments
  uint64_t sizes_derived = 0;        // from the free space and the rule
  uint64_t sizes_rounded = 0;        // from the request alone
  uint64_t sizes_checked = 0;        // known from the final blocks, and derived as well
  uint64_t sizes_different = 0;      // ... and the two disagree
};

struct DeviceHistory {
  int16_t device = 0;
  std::map<uint64_t, HistorySegment> segments;  // as the trace begins
  std::map<uint64_t, HistoryBlock> blocks;
  HistoryFacts facts;
};

// Reconstructs the beginning of `device` and completes the entries of its trace (sizes, flags,
// pools) in place. `trace` may be null: then the beginning is the end.
DeviceHistory reconstruct(const Snapshot& snapshot, int16_t device, SnapshotTrace* trace,
                          const AllocatorSettings& settings);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_HISTORY_H
