// Where the chunks of a trace lie: the frames that were sealed and the slots of the window that
// were not. One pass over the file finds, checks and counts them.
//
//   window slots   read first and kept: a live writer recycles them
//   ring areas     their frames by generation (ring_index.h); older content is passed over
//   frames         found one after another; zeros in between are reserved space that was never
//                  written; after damage the search goes on 8 bytes further
//
// A chunk may be in both places, (slot, generation) says so; the frame wins, it is complete.
#ifndef VRAMTRACK_ANALYZER_TRACE_CHUNK_INDEX_H
#define VRAMTRACK_ANALYZER_TRACE_CHUNK_INDEX_H

#include <vramtrack/trace_codec.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trace/file_bytes.h"
#include "trace/recording.h"

namespace vramtrack {

// One chunk's place. Kept for each chunk of the file, so it is small.
struct ChunkRef {
  uint64_t first_sequence = 0;
  uint64_t offset = 0;  // of the stored body in the file; of the copy in `window` for a slot
  uint32_t stored_bytes = 0;
  uint32_t raw_bytes = 0;
  Codec codec = Codec::raw;
  bool in_window = false;
  bool in_ring = false;  // a live writer may overwrite it: `checksum` tells
  uint32_t checksum = 0;
};

struct ChunkIndex {
  explicit ChunkIndex(const std::filesystem::path& path);

  FileBytes file;
  FileHeader header;
  RingHeader ring;
  std::optional<RingBeginning> beginning;  // of a ring that has overwritten events
  std::vector<CarriedEvent> carried;       // what was live at the beginning
  std::vector<ChunkRef> chunks;            // by first sequence number, after build()
  std::vector<uint8_t> window;             // copies of the slots that hold chunks
  std::vector<std::string> symbols;
  std::string end_totals;
  Integrity integrity;

  // Fills the index. `inspect` sees the bytes of each chunk once, header and records, and returns
  // whether all records could be read.
  void build(const std::function<bool(std::span<const uint8_t>)>& inspect);

  // The bytes of a chunk, header and records, in `buffer`; empty where they are gone. Throws
  // InputError where the ring went round since build().
  [[nodiscard]] std::span<const uint8_t> load(const ChunkRef& chunk,
                                              std::vector<uint8_t>& buffer) const;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_CHUNK_INDEX_H
