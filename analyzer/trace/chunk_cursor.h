// Reads the records of one chunk, one after another.
#ifndef VRAMTRACK_ANALYZER_TRACE_CHUNK_CURSOR_H
#define VRAMTRACK_ANALYZER_TRACE_CHUNK_CURSOR_H

#include <vramtrack/trace_codec.h>

#include <optional>
#include <span>

namespace vramtrack {

// The header of a chunk whose bytes are whole: magic, and used_bytes cut to what is there.
std::optional<ChunkHeader> chunk_header(std::span<const uint8_t> bytes);

class ChunkCursor {
 public:
  // `bytes`: ChunkHeader and records; they must outlive the cursor.
  ChunkCursor(const ChunkHeader& header, std::span<const uint8_t> bytes);

  enum class Record { event, definition, end, damaged };

  // Advances to the next record. After `event` it is in event(); after `definition` the caller
  // reads it from definition(), whole, before the next call.
  Record next();
  [[nodiscard]] const Event& event() const { return event_; }
  [[nodiscard]] EventKind definition_kind() const { return definition_kind_; }
  [[nodiscard]] Reader& definition() { return in_; }
  // Advances to the next event; false at the end or at damage.
  bool next_event();

 private:
  Reader in_;
  CodecState codec_;
  uint32_t thread_;
  Event event_;
  EventKind definition_kind_ = EventKind::none;
};

// Reads over a definition, so that what follows can be read.
bool skip_definition(EventKind kind, Reader& in);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_CHUNK_CURSOR_H
