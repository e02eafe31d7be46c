// Makes traces to order, in the exact format, without the shim: golden traces, fuzz corpora, and
// files as a kill leaves them. An implementation of trace_format.h of its own, so that it is also a
// witness against the shim's writer and the analyzer's reader.
#ifndef VRAMTRACK_TESTS_SUPPORT_TRACE_WRITER_H
#define VRAMTRACK_TESTS_SUPPORT_TRACE_WRITER_H

#include <vramtrack/trace_codec.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::test {

struct PythonLine {
  std::string function;
  std::string file;
  uint32_t line = 0;
};

struct TraceOptions {
  Codec codec = Codec::raw;
  uint32_t slot_bytes = 4096;
  uint32_t slot_count = 16;
  std::string metadata = R"({"command": ["python", "train.py"], "host": "node7", "pid": 4242})";
  bool finished = true;           // else the last chunk of each thread stays in the window
  bool leave_duplicates = false;  // the last chunk of each thread is in its slot and a frame
  uint64_t dropped_events = 0;
  uint64_t hole_bytes = 0;  // zeros between frames, as reserved space that was never written
  // Before the last frame: the beginnings of frames for the chunks that stay in the window, as a
  // kill leaves them that hits several threads while they write.
  bool tear_unsealed = false;
  bool tear_again = false;  // before the last frame: a torn copy of it, as a full disk leaves it
};

class TraceWriter {
 public:
  explicit TraceWriter(TraceOptions options = {});

  uint32_t text(std::string_view text);
  // Python frames, innermost first; each stands for the first line of a code object.
  uint32_t stack(const std::vector<PythonLine>& lines);
  uint32_t native_stack(const std::vector<uint64_t>& pcs);
  // A mapped file; stacks that are written after it may lie in it. No build id.
  void module(uint64_t base, uint64_t bytes, std::string_view path);
  void metadata(std::string_view key, std::string_view value);
  void thread_name(uint32_t thread, std::string_view name);

  // Appends an event to the chunk of its thread. Sequence number and time are given where they are
  // 0: one more than the last, a microsecond later.
  uint64_t event(Event event);

  // Shorthands of event().
  uint64_t alloc(uint64_t address, uint64_t size, uint32_t stack = 0);  // physical, device 0
  void free(uint64_t address);                                          // physical, both records
  uint64_t block(uint64_t address, uint64_t size, uint32_t stack = 0);  // device 0
  void free_block(uint64_t address, uint64_t size);

  // The whole file. Nothing may be added afterwards.
  std::vector<uint8_t> bytes();
  void save(const std::filesystem::path& path);

  [[nodiscard]] uint64_t sequence() const { return sequence_; }

 private:
  struct Chunk {
    ChunkHeader header{};
    std::vector<uint8_t> records;
    CodecState codec;
    bool has_events = false;
  };

  Chunk& chunk_of(uint32_t thread, size_t room);
  void define(EventKind kind, const std::vector<uint64_t>& head, std::string_view tail);
  void seal(Chunk& chunk);
  void tear();
  void append_frame(FrameType type, const std::vector<uint8_t>& raw);
  static std::vector<uint8_t> image(const Chunk& chunk);

  TraceOptions options_;
  std::map<std::string, uint32_t, std::less<>> texts_;
  std::map<uint32_t, Chunk> chunks_;
  std::map<uint32_t, uint32_t> generations_;
  std::vector<uint8_t> frames_;
  size_t last_frame_ = 0;  // where it begins in frames_
  uint32_t next_stack_ = 1;
  uint32_t next_code_ = 1;
  uint64_t sequence_ = 0;
  uint64_t time_ns_ = 0;
};

// CRC-32C bit by bit: slow, short, and not the reader's.
uint32_t plain_crc32c(const std::vector<uint8_t>& data);

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_SUPPORT_TRACE_WRITER_H
