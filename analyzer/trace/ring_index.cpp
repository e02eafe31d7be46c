#include "trace/ring_index.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "trace/crc32c.h"

namespace vramtrack {
namespace {

constexpr uint64_t kAlignment = 8;
constexpr size_t kPiece = 64 * 1024;

// A frame of this generation at `offset`, checked; 0: of any.
bool frame_at(const FileBytes& file, uint64_t offset, uint64_t end, uint32_t generation,
              RingFrame& frame, std::vector<uint8_t>& body) {
  uint8_t head[sizeof(FrameHeader)];
  if (offset + sizeof(head) > end || !file.read_exactly(offset, head)) return false;
  std::memcpy(&frame.header, head, sizeof(head));
  const FrameHeader& header = frame.header;
  if (header.magic != kFrameMagic || header.ring_generation == 0 ||
      (generation != 0 && header.ring_generation != generation) ||
      header.stored_bytes > end - offset - sizeof(head) || header.raw_bytes > kMaxFrameBytes)
    return false;
  frame.body_offset = offset + sizeof(head);
  return unpack_frame(file, frame, body);
}

bool snapshot_header(const std::vector<uint8_t>& body, SnapshotHeader& header) {
  if (body.size() < sizeof(header)) return false;
  std::memcpy(&header, body.data(), sizeof(header));
  return true;
}

// The next place, from `offset`, where a frame of the generation could begin.
uint64_t next_candidate(const FileBytes& file, uint64_t offset, uint64_t end, uint32_t generation) {
  std::vector<uint8_t> piece(kPiece);
  while (offset + sizeof(FrameHeader) <= end) {
    const size_t got = file.read(offset, std::span(piece).first(std::min(kPiece, end - offset)));
    if (got < sizeof(FrameHeader)) return end;
    size_t at = 0;
    for (; at + sizeof(FrameHeader) <= got; at += kAlignment) {
      FrameHeader header{};
      std::memcpy(&header, piece.data() + at, sizeof(header));
      if (header.magic == kFrameMagic && header.ring_generation == generation) return offset + at;
    }
    offset += at;
  }
  return end;
}

void read_area(const FileBytes& file, uint64_t begin, uint64_t end, RingGeneration& generation) {
  std::vector<uint8_t> body;
  RingFrame frame;
  uint32_t next_part = 0;
  for (uint64_t offset = begin; offset < end;) {
    if (!frame_at(file, offset, end, generation.number, frame, body)) {
      // Several threads may have been writing when the process was killed: look beyond.
      offset = next_candidate(file, offset + kAlignment, end, generation.number);
      continue;
    }
    offset = (frame.body_offset + frame.header.stored_bytes + kAlignment - 1) & ~(kAlignment - 1);
    if (frame.header.type == static_cast<uint16_t>(FrameType::chunk)) {
      generation.chunks.push_back(frame);
    } else if (frame.header.type == static_cast<uint16_t>(FrameType::snapshot)) {
      SnapshotHeader header{};
      if (!snapshot_header(body, header) || header.part != next_part) continue;
      ++next_part;
      generation.snapshot.push_back(frame);
      generation.sequence = header.sequence;
      generation.time_ns = header.time_ns;
      if ((header.flags & kSnapshotComplete) != 0) generation.complete = true;
    }
  }
}

}  // namespace

bool unpack_frame(const FileBytes& file, const RingFrame& frame, std::vector<uint8_t>& out) {
  std::vector<uint8_t> stored(frame.header.stored_bytes);
  if (!file.read_exactly(frame.body_offset, stored) || crc32c(stored) != frame.header.checksum)
    return false;
  if (frame.header.codec == static_cast<uint16_t>(Codec::raw)) {
    out = std::move(stored);
    return true;
  }
  if (frame.header.codec != static_cast<uint16_t>(Codec::zstd)) return false;
  out.resize(frame.header.raw_bytes);
  const size_t got = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  return ZSTD_isError(got) == 0 && got == out.size();
}

std::vector<RingGeneration> read_ring(const FileBytes& file, const RingHeader& ring) {
  struct Area {
    uint32_t generation;
    uint64_t begin;
  };
  std::vector<Area> areas;
  std::vector<uint8_t> body;
  for (uint32_t i = 0; i < ring.area_count; ++i) {
    const uint64_t begin = ring.offset + i * ring.area_bytes;
    RingFrame first;
    SnapshotHeader header{};
    if (frame_at(file, begin, begin + ring.area_bytes, 0, first, body) &&
        first.header.type == static_cast<uint16_t>(FrameType::snapshot) &&
        snapshot_header(body, header) && header.part == 0)
      areas.push_back({first.header.ring_generation, begin});
  }
  std::sort(areas.begin(), areas.end(),
            [](const Area& a, const Area& b) { return a.generation > b.generation; });
  std::vector<RingGeneration> generations;  // newest first
  for (const Area& area : areas) {
    if (!generations.empty() && area.generation + 1 != generations.back().number) break;
    RingGeneration& generation = generations.emplace_back();
    generation.number = area.generation;
    read_area(file, area.begin, area.begin + ring.area_bytes, generation);
  }
  while (generations.size() > 1 && !generations.back().complete &&
         std::any_of(generations.begin(), generations.end(),
                     [](const RingGeneration& g) { return g.complete; }))
    generations.pop_back();
  std::reverse(generations.begin(), generations.end());
  return generations;
}

std::vector<CarriedEvent> read_snapshot(const FileBytes& file, RingGeneration& generation) {
  std::vector<CarriedEvent> carried;
  std::vector<uint8_t> body;
  for (const RingFrame& frame : generation.snapshot) {
    if (!unpack_frame(file, frame, body) || body.size() < sizeof(SnapshotHeader)) {
      generation.complete = false;
      continue;
    }
    Reader in(body.data() + sizeof(SnapshotHeader), body.size() - sizeof(SnapshotHeader));
    while (in.left() != 0) {
      CarriedEvent record;
      if (!decode_carried(in, record)) {
        generation.complete = false;
        break;
      }
      carried.push_back(record);
    }
  }
  return carried;
}

}  // namespace vramtrack
