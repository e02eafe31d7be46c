#include "support/trace_writer.h"

#include <zstd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace vramtrack::test {
namespace {

constexpr size_t kAlignment = 8;

template <class T>
void append(std::vector<uint8_t>& out, const T& value) {
  const size_t end = out.size();
  out.resize(end + sizeof(value));
  std::memcpy(out.data() + end, &value, sizeof(value));
}

void pad(std::vector<uint8_t>& out) {
  while (out.size() % kAlignment != 0) out.push_back(0);
}

void append_varint(std::vector<uint8_t>& out, uint64_t value) {
  std::array<uint8_t, kMaxVarintBytes> bytes{};
  Writer writer(bytes.data());
  writer.varint(value);
  out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(writer.size()));
}

}  // namespace

uint32_t plain_crc32c(const std::vector<uint8_t>& data) {
  uint32_t crc = ~0U;
  for (const uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

TraceWriter::TraceWriter(TraceOptions options) : options_(std::move(options)) {
}

// The open chunk of a thread, with room for so many bytes.
TraceWriter::Chunk& TraceWriter::chunk_of(uint32_t thread, size_t room) {
  Chunk& chunk = chunks_[thread];
  const bool full = sizeof(ChunkHeader) + chunk.records.size() + room > options_.slot_bytes;
  if (chunk.header.magic != 0 && !full) return chunk;
  if (chunk.header.magic != 0) seal(chunk);
  chunk = Chunk{};
  chunk.header.magic = kChunkMagic;
  chunk.header.slot = thread;
  chunk.header.generation = ++generations_[thread];
  chunk.header.thread = thread;
  chunk.header.first_sequence = sequence_ + 1;
  chunk.header.first_time_ns = time_ns_;
  chunk.header.last_sequence = sequence_;
  chunk.codec = CodecState::at(chunk.header);
  return chunk;
}

std::vector<uint8_t> TraceWriter::image(const Chunk& chunk) {
  std::vector<uint8_t> out;
  ChunkHeader header = chunk.header;
  header.used_bytes = static_cast<uint32_t>(chunk.records.size());
  append(out, header);
  out.insert(out.end(), chunk.records.begin(), chunk.records.end());
  return out;
}

void TraceWriter::seal(Chunk& chunk) {
  append_frame(FrameType::chunk, image(chunk));
}

void TraceWriter::append_frame(FrameType type, const std::vector<uint8_t>& raw) {
  std::vector<uint8_t> stored = raw;
  if (options_.codec == Codec::zstd) {
    stored.resize(ZSTD_compressBound(raw.size()));
    stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 3));
  }
  last_frame_ = frames_.size();
  append(frames_, FrameHeader{.magic = kFrameMagic,
                              .type = static_cast<uint16_t>(type),
                              .codec = static_cast<uint16_t>(options_.codec),
                              .stored_bytes = static_cast<uint32_t>(stored.size()),
                              .raw_bytes = static_cast<uint32_t>(raw.size()),
                              .checksum = plain_crc32c(stored),
                              .ring_generation = 0});
  frames_.insert(frames_.end(), stored.begin(), stored.end());
  pad(frames_);
  frames_.insert(frames_.end(), options_.hole_bytes, 0);
}

void TraceWriter::define(EventKind kind, const std::vector<uint64_t>& head, std::string_view tail) {
  std::vector<uint8_t> record{static_cast<uint8_t>(kind)};
  for (const uint64_t value : head) append_varint(record, value);
  record.insert(record.end(), tail.begin(), tail.end());
  Chunk& chunk = chunk_of(0, record.size());
  chunk.header.flags |= kChunkHasDefinitions;
  chunk.records.insert(chunk.records.end(), record.begin(), record.end());
}

uint32_t TraceWriter::text(std::string_view text) {
  if (text.empty()) return 0;
  const auto [place, added] =
      texts_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size() + 1));
  if (added) define(EventKind::define_string, {place->second, text.size()}, text);
  return place->second;
}

uint32_t TraceWriter::stack(const std::vector<PythonLine>& lines) {
  std::vector<uint64_t> head{next_stack_, lines.size()};
  for (const PythonLine& line : lines) {
    const uint32_t code = next_code_++;
    // The line table of Python 3.9 may be empty: all of the code is its first line.
    define(EventKind::define_code, {code, text(line.function), text(line.file), line.line, 9, 0},
           {});
    head.push_back(uint64_t{code} * 2 + 1);
    head.push_back(0);
  }
  define(EventKind::define_stack, head, {});
  return next_stack_++;
}

uint32_t TraceWriter::native_stack(const std::vector<uint64_t>& pcs) {
  std::vector<uint64_t> head{next_stack_, pcs.size()};
  uint64_t before = 0;
  for (const uint64_t pc : pcs) {
    head.push_back(delta(pc, before) * 2);
    before = pc;
  }
  define(EventKind::define_stack, head, {});
  return next_stack_++;
}

void TraceWriter::module(uint64_t base, uint64_t bytes, std::string_view path) {
  const uint32_t path_id = text(path);
  // Stacks and modules share one counter.
  define(EventKind::define_module, {next_stack_++, base, base, base + bytes, path_id, 0}, {});
}

void TraceWriter::metadata(std::string_view key, std::string_view value) {
  const uint32_t key_id = text(key);
  define(EventKind::define_metadata, {key_id, text(value)}, {});
}

void TraceWriter::thread_name(uint32_t thread, std::string_view name) {
  define(EventKind::define_thread, {thread, 1000 + thread, text(name)}, {});
}

uint64_t TraceWriter::event(Event event) {
  if (event.sequence == 0) event.sequence = sequence_ + 1;
  if (event.time_ns == 0) event.time_ns = time_ns_ + 1000;
  Chunk& chunk = chunk_of(event.thread, kMaxEventBytes);
  if (!chunk.has_events) {
    chunk.has_events = true;
    chunk.header.first_sequence = event.sequence;
    chunk.header.first_time_ns = event.time_ns;
    chunk.codec = CodecState::at(chunk.header);
  }
  std::array<uint8_t, kMaxEventBytes> bytes{};
  const size_t size = encode_event(event, chunk.codec, bytes.data());
  chunk.records.insert(chunk.records.end(), bytes.begin(),
                       bytes.begin() + static_cast<std::ptrdiff_t>(size));
  chunk.header.last_sequence = event.sequence;
  sequence_ = std::max(sequence_, event.sequence);
  time_ns_ = std::max(time_ns_, event.time_ns);
  return event.sequence;
}

uint64_t TraceWriter::alloc(uint64_t address, uint64_t size, uint32_t stack) {
  return event({.kind = EventKind::physical_alloc,
                .memory = Memory::device,
                .device = 0,
                .address = address,
                .size = size,
                .stack = stack});
}

void TraceWriter::free(uint64_t address) {
  event({.kind = EventKind::physical_free_begin, .address = address});
  event({.kind = EventKind::physical_free_end, .address = address});
}

uint64_t TraceWriter::block(uint64_t address, uint64_t size, uint32_t stack) {
  return event({.kind = EventKind::block_alloc,
                .device = 0,
                .address = address,
                .size = size,
                .stack = stack});
}

void TraceWriter::free_block(uint64_t address, uint64_t size) {
  event({.kind = EventKind::block_free, .device = 0, .address = address, .size = size});
}

// Half of each body was written, and of one more frame nothing.
void TraceWriter::tear() {
  const auto last = frames_.begin() + static_cast<std::ptrdiff_t>(last_frame_);
  const std::vector<uint8_t> whole(last, frames_.end());
  frames_.erase(last, frames_.end());
  const auto half = [this](size_t begin) {
    const size_t body = begin + sizeof(FrameHeader);
    const auto middle = static_cast<std::ptrdiff_t>(body + (frames_.size() - body) / 2);
    std::fill(frames_.begin() + middle, frames_.end(), uint8_t{0});
  };
  if (options_.tear_unsealed) {
    for (const auto& [thread, chunk] : chunks_) {
      append_frame(FrameType::chunk, image(chunk));
      half(last_frame_);
    }
    frames_.resize(frames_.size() + 1024);
  }
  const size_t copy = frames_.size();
  if (options_.tear_again) {
    frames_.insert(frames_.end(), whole.begin(), whole.end());
    half(copy);
  }
  frames_.insert(frames_.end(), whole.begin(), whole.end());
}

std::vector<uint8_t> TraceWriter::bytes() {
  std::vector<uint8_t> window(size_t{options_.slot_bytes} * options_.slot_count);
  for (auto& [thread, chunk] : chunks_) {
    if (!options_.finished || options_.leave_duplicates) {
      if (thread >= options_.slot_count) throw std::logic_error("more threads than slots");
      const std::vector<uint8_t> slot = image(chunk);
      std::memcpy(window.data() + size_t{thread} * options_.slot_bytes, slot.data(), slot.size());
    }
    if (options_.finished || options_.leave_duplicates) seal(chunk);
  }
  tear();
  if (options_.finished) append_frame(FrameType::end, {'{', '}'});

  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof(kFileMagic));
  header.format_version = kFormatVersion;
  header.header_bytes = sizeof(FileHeader);
  header.metadata_bytes = static_cast<uint32_t>(options_.metadata.size());
  header.slot_bytes = options_.slot_bytes;
  header.slot_count = options_.slot_count;
  header.flags = options_.finished ? uint32_t{kFileFinished} : 0U;
  header.window_offset =
      (sizeof(FileHeader) + options_.metadata.size() + kAlignment - 1) / kAlignment * kAlignment;
  header.frames_offset = header.window_offset + window.size();
  header.frames_end = header.frames_offset + frames_.size();
  header.dropped_events = options_.dropped_events;
  header.start_realtime_ns = 1'700'000'000'000'000'000;

  std::vector<uint8_t> file;
  append(file, header);
  file.insert(file.end(), options_.metadata.begin(), options_.metadata.end());
  pad(file);
  file.insert(file.end(), window.begin(), window.end());
  file.insert(file.end(), frames_.begin(), frames_.end());
  return file;
}

void TraceWriter::save(const std::filesystem::path& path) {
  const std::vector<uint8_t> file = bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

}  // namespace vramtrack::test
