// Bytes of an input file, one after the other, decompressed where the file is gzip or zstd.
//
// Danger: nobody vouches for the bytes. Nothing here trusts a length that it read; memory is one
// buffer, and a compressed file that unpacks to an implausible multiple of itself is refused.
#ifndef VRAMTRACK_ANALYZER_IMPORT_BYTE_SOURCE_H
#define VRAMTRACK_ANALYZER_IMPORT_BYTE_SOURCE_H

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace vramtrack {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Opens a file by its content: plain, gzip or zstd. Throws InputError where that fails.
  static std::unique_ptr<ByteSource> open(const std::filesystem::path& path);
  // Bytes that somebody else keeps alive; for tests and fuzzers.
  static std::unique_ptr<ByteSource> from_memory(std::span<const uint8_t> bytes);

  // The next byte, or -1 at the end.
  int get() {
    if (at_ == end_ && !refill()) return -1;
    return *at_++;
  }
  int peek() {
    if (at_ == end_ && !refill()) return -1;
    return *at_;
  }
  // Fills `out`; false where the input ends before.
  bool read(void* out, size_t size);
  // Up to and without the next newline; nothing where there is none within `limit` bytes.
  std::optional<std::string> line(size_t limit);
  // The first bytes of the input as they are, without consuming them. Only before the first read.
  std::span<const uint8_t> head();

  [[nodiscard]] uint64_t position() const { return taken_ - static_cast<uint64_t>(end_ - at_); }
  // Bytes of the whole input where it is plain, otherwise those seen so far.
  [[nodiscard]] uint64_t known_size() const { return total_ != 0 ? total_ : taken_; }
  // Bytes that are still to come, where that is known.
  [[nodiscard]] std::optional<uint64_t> left() const {
    if (total_ == 0) return std::nullopt;
    return total_ - position();
  }

 protected:
  ByteSource() = default;
  // The next stretch of bytes, empty at the end; valid until the next call.
  virtual std::span<const uint8_t> next() = 0;
  uint64_t total_ = 0;

 private:
  bool refill();

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t taken_ = 0;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_BYTE_SOURCE_H
