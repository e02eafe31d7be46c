#include "trace/chunk_index.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "trace/chunk_cursor.h"
#include "trace/crc32c.h"
#include "trace/file_header.h"
#include "trace/input_error.h"
#include "trace/ring_index.h"

namespace vramtrack {
namespace {

// Slots are copied into memory. A writer's window has 4 MiB; this is the most we take.
constexpr uint64_t kMostWindowBytes = 256 * 1024 * 1024;
constexpr uint64_t kAlignment = 8;
constexpr uint64_t kNone = ~uint64_t{0};

constexpr uint64_t aligned(uint64_t offset) {
  return (offset + kAlignment - 1) & ~(kAlignment - 1);
}

uint64_t identity(const ChunkHeader& chunk) {
  return uint64_t{chunk.slot} << 32 | chunk.generation;
}

uint64_t content_of(const FrameHeader& frame) {
  return uint64_t{frame.checksum} << 32 | frame.stored_bytes;
}

// Unpacks at most `raw_bytes`; what claims more, or is no zstd, is damaged.
bool decompress(std::span<const uint8_t> stored, uint32_t raw_bytes, std::vector<uint8_t>& out) {
  out.resize(raw_bytes);
  const size_t got = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  return ZSTD_isError(got) == 0 && got == raw_bytes;
}

// The pass over one file.
class Builder {
 public:
  Builder(ChunkIndex& index, const std::function<bool(std::span<const uint8_t>)>& inspect)
      : index_(index), file_(index.file), inspect_(inspect) {}

  void run() {
    copy_slots();  // before the frames: a chunk that is sealed meanwhile is then found as a frame
    if (index_.ring.area_count != 0) walk_ring();
    walk_frames();
    judge_stretches();
    add_slots();
    std::stable_sort(
        index_.chunks.begin(), index_.chunks.end(),
        [](const ChunkRef& a, const ChunkRef& b) { return a.first_sequence < b.first_sequence; });
  }

 private:
  enum class Verdict { good, damaged, cut_short };
  // Bytes between whole frames that are none.
  struct Stretch {
    uint64_t begin;
    uint64_t end;
  };

  void copy_slots();
  void add_slots();
  void walk_frames();
  void walk_ring();
  void judge_stretches();
  bool is_kept_elsewhere(const FrameHeader& torn);
  uint64_t skip_zeros(uint64_t offset);
  Verdict take_frame(uint64_t offset, const FrameHeader& frame);
  bool take_body(uint64_t offset, const FrameHeader& frame, std::span<const uint8_t> body);
  bool starts_frame_or_ends(uint64_t offset) const;
  void add(const ChunkHeader& chunk, std::span<const uint8_t> bytes, ChunkRef ref);

  ChunkIndex& index_;
  const FileBytes& file_;
  const std::function<bool(std::span<const uint8_t>)>& inspect_;
  std::unordered_set<uint64_t> seen_;
  std::vector<std::pair<ChunkHeader, ChunkRef>> slots_;
  std::vector<Stretch> stretches_;
  std::unordered_set<uint64_t> whole_;               // content_of() the whole frames
  std::unordered_map<uint32_t, uint32_t> unsealed_;  // how many chunks in slots have so many bytes
  std::vector<uint8_t> stored_;
  std::vector<uint8_t> raw_;
  uint64_t wasted_bytes_ = 0;
};

void Builder::copy_slots() {
  const FileHeader& header = index_.header;
  for (uint32_t slot = 0; slot < header.slot_count; ++slot) {
    const uint64_t offset = header.window_offset + uint64_t{slot} * header.slot_bytes;
    uint8_t head[sizeof(ChunkHeader)];
    if (!file_.read_exactly(offset, head)) break;
    auto chunk = chunk_header(head);
    if (!chunk) continue;
    std::memcpy(&chunk->used_bytes, head + offsetof(ChunkHeader, used_bytes), sizeof(uint32_t));
    const uint32_t room = header.slot_bytes - static_cast<uint32_t>(sizeof(ChunkHeader));
    if (chunk->used_bytes > room) {
      ++index_.integrity.corrupt_chunks;
      continue;
    }
    const uint64_t bytes = sizeof(ChunkHeader) + chunk->used_bytes;
    const uint64_t place = index_.window.size();
    if (place + bytes > kMostWindowBytes) {
      throw InputError(fmt::format("{} is damaged: its window holds more than {} MiB", file_.path(),
                                   kMostWindowBytes >> 20));
    }
    index_.window.resize(place + bytes);
    const std::span copy(index_.window.data() + place, bytes);
    uint8_t again[sizeof(ChunkHeader)];
    const bool whole = file_.read_exactly(offset, copy) && file_.read_exactly(offset, again);
    const auto now = whole ? chunk_header(again) : std::nullopt;
    if (!now || identity(*now) != identity(*chunk)) {  // sealed and reused while we copied
      index_.window.resize(place);
      continue;
    }
    slots_.emplace_back(*chunk, ChunkRef{.offset = place,
                                         .stored_bytes = static_cast<uint32_t>(bytes),
                                         .raw_bytes = static_cast<uint32_t>(bytes),
                                         .in_window = true});
  }
}

void Builder::add_slots() {
  for (const auto& [chunk, ref] : slots_) {
    if (seen_.contains(identity(chunk))) {
      ++index_.integrity.duplicate_chunks;
      continue;
    }
    add(chunk, std::span(index_.window.data() + ref.offset, ref.raw_bytes), ref);
  }
}

void Builder::add(const ChunkHeader& chunk, std::span<const uint8_t> bytes, ChunkRef ref) {
  seen_.insert(identity(chunk));
  if (chunk.used_bytes == 0) return;
  ref.first_sequence = chunk.first_sequence;
  index_.chunks.push_back(ref);
  ++index_.integrity.chunks;
  if (!inspect_(bytes)) ++index_.integrity.corrupt_chunks;
}

// From `offset`, aligned, to the next byte that is not zero, aligned down.
uint64_t Builder::skip_zeros(uint64_t offset) {
  stored_.resize(64 * 1024);
  while (offset < file_.size()) {
    const size_t got = file_.read(offset, stored_);
    if (got == 0) break;
    const auto end = stored_.begin() + static_cast<std::ptrdiff_t>(got);
    const auto hit = std::find_if(stored_.begin(), end, [](uint8_t byte) { return byte != 0; });
    if (hit != end) {
      return offset + (static_cast<uint64_t>(hit - stored_.begin()) & ~(kAlignment - 1));
    }
    offset += got & ~(kAlignment - 1);
    if (got < kAlignment) break;
  }
  return file_.size();
}

void Builder::walk_ring() {
  std::vector<RingGeneration> generations = read_ring(file_, index_.ring);
  if (generations.empty()) {
    throw InputError(fmt::format("{} is damaged: nothing of its ring can be read", file_.path()));
  }
  RingGeneration& first = generations.front();
  if (first.number != 1) {
    index_.carried = read_snapshot(file_, first);
    index_.beginning = {
        .sequence = first.sequence, .time_ns = first.time_ns, .complete = first.complete};
  }
  for (const RingGeneration& generation : generations) {
    for (const RingFrame& frame : generation.chunks) {
      if (!unpack_frame(file_, frame, raw_)) continue;  // overwritten meanwhile
      const auto chunk = chunk_header(raw_);
      if (!chunk || seen_.contains(identity(*chunk))) continue;
      add(*chunk, raw_,
          ChunkRef{.offset = frame.body_offset,
                   .stored_bytes = frame.header.stored_bytes,
                   .raw_bytes = frame.header.raw_bytes,
                   .codec = static_cast<Codec>(frame.header.codec),
                   .in_ring = true,
                   .checksum = frame.header.checksum});
    }
  }
}

void Builder::walk_frames() {
  uint64_t damage = kNone;  // where the bytes stopped making sense
  uint64_t offset = aligned(index_.header.frames_offset);
  while (offset < file_.size()) {
    FrameHeader frame{};
    uint8_t head[sizeof(FrameHeader)];
    const bool whole = file_.read_exactly(offset, head);
    if (whole) std::memcpy(&frame, head, sizeof(frame));
    if (whole && frame.magic == 0) {
      if (damage == kNone) {
        const uint64_t next = skip_zeros(offset);
        offset = next == offset ? offset + kAlignment : next;
        continue;
      }
    } else if (whole && frame.magic == kFrameMagic) {
      const Verdict verdict = take_frame(offset, frame);
      if (verdict == Verdict::good) {
        if (damage != kNone) stretches_.push_back({damage, offset});
        damage = kNone;
        offset = aligned(offset + sizeof(frame) + frame.stored_bytes);
        continue;
      }
      if (verdict == Verdict::damaged &&
          starts_frame_or_ends(aligned(offset + sizeof(frame) + frame.stored_bytes))) {
        // Its length is right, only its body is not.
        if (damage == kNone) damage = offset;
        offset = aligned(offset + sizeof(frame) + frame.stored_bytes);
        continue;
      }
    }
    if (damage == kNone) damage = offset;
    offset += kAlignment;
  }
  // Nothing whole follows: the frame that was being written when the writer was killed.
  if (damage != kNone) index_.integrity.truncated_bytes = file_.size() - damage;
}

// Threads write their frames side by side. So a kill may leave a torn frame, or a place where none
// of it was written yet, before one that is whole; and a full disk leaves one where the next had
// begun. Nothing is lost by either: the chunk is still in its slot, or was written once more.
void Builder::judge_stretches() {
  const bool finished = (index_.header.flags & kFileFinished) != 0;
  for (const auto& [chunk, ref] : slots_) {
    if (!finished && !seen_.contains(identity(chunk))) ++unsealed_[ref.raw_bytes];
  }
  for (const auto& [begin, end] : stretches_) {
    uint64_t offset = begin;
    while (offset < end) {
      FrameHeader frame{};
      uint8_t head[sizeof(FrameHeader)];
      if (!file_.read_exactly(offset, head)) break;
      std::memcpy(&frame, head, sizeof(frame));
      if (frame.magic == 0) {
        const uint64_t next = skip_zeros(offset);
        offset = next == offset ? offset + kAlignment : next;
        continue;
      }
      const uint64_t next = aligned(offset + sizeof(frame) + frame.stored_bytes);
      if (frame.magic != kFrameMagic || next > end || !is_kept_elsewhere(frame)) break;
      offset = next;
    }
    if (offset < end) index_.integrity.corrupt_bytes += end - begin;
  }
}

bool Builder::is_kept_elsewhere(const FrameHeader& torn) {
  if (torn.type != static_cast<uint16_t>(FrameType::chunk)) return false;
  if (whole_.contains(content_of(torn))) return true;
  const auto slot = unsealed_.find(torn.raw_bytes);
  if (slot == unsealed_.end() || slot->second == 0) return false;
  --slot->second;
  return true;
}

bool Builder::starts_frame_or_ends(uint64_t offset) const {
  uint32_t magic = 0;
  uint8_t bytes[sizeof(magic)];
  if (offset >= file_.size()) return offset == aligned(file_.size());
  if (!file_.read_exactly(offset, bytes)) return false;
  std::memcpy(&magic, bytes, sizeof(magic));
  return magic == kFrameMagic;
}

Builder::Verdict Builder::take_frame(uint64_t offset, const FrameHeader& frame) {
  if (frame.stored_bytes > kMaxFrameBytes || frame.raw_bytes > kMaxFrameBytes) {
    return Verdict::cut_short;  // lengths that no writer writes: search on from here
  }
  const uint64_t body_offset = offset + sizeof(frame);
  if (body_offset + frame.stored_bytes > file_.size()) return Verdict::cut_short;
  stored_.resize(frame.stored_bytes);
  if (!file_.read_exactly(body_offset, stored_)) return Verdict::cut_short;
  if (crc32c(stored_) != frame.checksum) {
    // A file made to waste our time has many headers that claim long bodies.
    wasted_bytes_ += frame.stored_bytes;
    if (wasted_bytes_ > 2 * kMaxFrameBytes + 4 * file_.size()) {
      throw InputError(fmt::format("{} is damaged beyond repair", file_.path()));
    }
    return Verdict::damaged;
  }
  return take_body(body_offset, frame, stored_) ? Verdict::good : Verdict::damaged;
}

bool Builder::take_body(uint64_t offset, const FrameHeader& frame, std::span<const uint8_t> body) {
  std::span<const uint8_t> bytes = body;
  if (frame.codec == static_cast<uint16_t>(Codec::zstd)) {
    if (!decompress(body, frame.raw_bytes, raw_)) return false;
    bytes = raw_;
  } else if (frame.codec != static_cast<uint16_t>(Codec::raw)) {
    return false;
  }
  const auto text = [bytes] {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::chunk: {
      const auto chunk = chunk_header(bytes);
      if (!chunk) return false;
      if (seen_.contains(identity(*chunk))) {
        ++index_.integrity.duplicate_chunks;
        return true;
      }
      whole_.insert(content_of(frame));
      add(*chunk, bytes,
          ChunkRef{.offset = offset,
                   .stored_bytes = frame.stored_bytes,
                   .raw_bytes = frame.raw_bytes,
                   .codec = static_cast<Codec>(frame.codec)});
      return true;
    }
    case FrameType::symbols:
      index_.symbols.push_back(text());
      return true;
    case FrameType::end:
      index_.end_totals = text();
      return true;
    default:
      return true;  // of a later writer: not for us
  }
}

}  // namespace

ChunkIndex::ChunkIndex(const std::filesystem::path& path)
    : file(path), header(read_file_header(file)), ring(read_ring_header(file, header)) {
}

void ChunkIndex::build(const std::function<bool(std::span<const uint8_t>)>& inspect) {
  Builder(*this, inspect).run();
}

std::span<const uint8_t> ChunkIndex::load(const ChunkRef& chunk,
                                          std::vector<uint8_t>& buffer) const {
  if (chunk.in_window) return std::span(window).subspan(chunk.offset, chunk.raw_bytes);
  std::vector<uint8_t> stored(chunk.stored_bytes);
  const bool there = file.read_exactly(chunk.offset, stored);
  if (chunk.in_ring && (!there || crc32c(stored) != chunk.checksum)) {
    throw InputError(fmt::format(
        "{} went round its ring while it was being read; try again, or copy the file first",
        file.path()));
  }
  if (!there) return {};
  if (chunk.codec == Codec::raw) {
    buffer = std::move(stored);
    return buffer;
  }
  if (!decompress(stored, chunk.raw_bytes, buffer)) return {};
  return buffer;
}

}  // namespace vramtrack
