#include "trace/chunk_cursor.h"

#include <algorithm>
#include <cstring>

namespace vramtrack {

std::optional<ChunkHeader> chunk_header(std::span<const uint8_t> bytes) {
  ChunkHeader header{};
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kChunkMagic) return std::nullopt;
  header.used_bytes =
      static_cast<uint32_t>(std::min<size_t>(header.used_bytes, bytes.size() - sizeof(header)));
  return header;
}

ChunkCursor::ChunkCursor(const ChunkHeader& header, std::span<const uint8_t> bytes)
    : in_(bytes.data() + sizeof(ChunkHeader), header.used_bytes),
      codec_(CodecState::at(header)),
      thread_(header.thread) {
}

ChunkCursor::Record ChunkCursor::next() {
  if (!in_.ok()) return Record::damaged;  // the definition before was cut
  if (in_.left() == 0) return Record::end;
  const auto kind = static_cast<EventKind>(in_.byte());
  if (kind == EventKind::none) return Record::damaged;
  if (is_definition(kind)) {
    definition_kind_ = kind;
    return Record::definition;
  }
  if (!decode_event(kind, in_, codec_, event_)) return Record::damaged;
  event_.thread = thread_;
  return Record::event;
}

bool ChunkCursor::next_event() {
  while (true) {
    switch (next()) {
      case Record::event:
        return true;
      case Record::definition:
        if (!skip_definition(definition_kind_, in_)) return false;
        break;
      case Record::end:
      case Record::damaged:
        return false;
    }
  }
}

bool skip_definition(EventKind kind, Reader& in) {
  const auto skip_varints = [&in](int count) {
    for (int i = 0; i < count; ++i) in.varint();
  };
  switch (kind) {
    case EventKind::define_string:
      skip_varints(1);
      in.bytes(in.varint());
      break;
    case EventKind::define_stack: {
      skip_varints(1);
      const uint64_t count = in.varint();
      if (count > kMaxStackDepth) return false;
      for (uint64_t i = 0; i < count; ++i) {
        if ((in.varint() & 1) != 0) in.varint();
      }
      break;
    }
    case EventKind::define_code:
    case EventKind::define_module:
      skip_varints(5);
      in.bytes(in.varint());
      break;
    case EventKind::define_thread:
      skip_varints(3);
      break;
    case EventKind::define_metadata:
      skip_varints(2);
      break;
    case EventKind::define_access: {
      skip_varints(3);
      const uint64_t count = in.varint();
      if (count > kMaxAccessAddresses) return false;
      skip_varints(static_cast<int>(2 * count));
      break;
    }
    case EventKind::kept_event: {
      CarriedEvent skipped;
      return decode_carried(in, skipped);
    }
    default:
      return false;  // of a length that this version does not know
  }
  return in.ok();
}

}  // namespace vramtrack
