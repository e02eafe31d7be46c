// A PyTorch memory snapshot, packed: the segments and blocks of the moment at which it was taken,
// and the trace that led there, one device after the other.
#ifndef VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_H
#define VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

enum class BlockState : uint8_t { free, allocated, pending };

struct SnapshotBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t requested = 0;  // 0 unknown, or a free block
  StackId stack = 0;
  BlockState state = BlockState::free;
};

struct SnapshotSegment {
  int16_t device = 0;
  bool small_pool = false;
  bool expandable = false;
  bool contradicts_blocks = false;  // its own allocated_size differs from the sum over its blocks
  uint32_t pool = 0;                // index into Snapshot::pools, 0 the default pool
  StackId stack = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  std::vector<SnapshotBlock> blocks;
};

struct SnapshotEntry {
  uint64_t time_us = 0;    // 0: this PyTorch did not write times
  uint64_t address = 0;    // of an OOM: the bytes that were free on the device
  uint64_t size = 0;       // block entries: bytes of the block, 0 until history.h has found it
  uint64_t requested = 0;  // block entries: as recorded
  StackId stack = 0;
  StringId text = 0;
  uint32_t stream = 0;  // index into Snapshot::streams
  uint16_t pool = 0;    // index into Snapshot::pools
  EventKind kind = EventKind::none;
  uint8_t flags = 0;  // EventFlag, those that fit
};
static_assert(sizeof(SnapshotEntry) == 48);

struct SnapshotTrace {
  int16_t device = 0;
  std::vector<SnapshotEntry> entries;
};

struct SnapshotAnnotation {
  uint64_t time_us = 0;
  StringId name = 0;
  int16_t device = 0;
  bool begin = true;
};

struct Snapshot {
  std::string schema;  // "list of segments (1.x)", ...
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotTrace> traces;
  std::vector<SnapshotAnnotation> annotations;
  std::vector<uint64_t> streams{0};
  std::vector<std::pair<uint64_t, uint64_t>> pools{{0, 0}};
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_SNAPSHOT_H
