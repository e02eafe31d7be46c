#include "import/byte_source.h"

#include <fmt/format.h>
#include <zstd.h>
#ifdef VRAMTRACK_HAVE_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;
// A snapshot packs about 20 to 1. Beyond this the file is a bomb.
constexpr uint64_t kMaxRatio = 400;
constexpr uint64_t kRatioFreeBytes = 64ULL << 20;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

class PlainFile : public ByteSource {
 public:
  PlainFile(File file, uint64_t size) : file_(std::move(file)), buffer_(kBufferBytes) {
    total_ = size;
  }

 protected:
  std::span<const uint8_t> next() override {
    const size_t got = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (got == 0 && std::ferror(file_.get()) != 0) throw InputError("cannot be read to its end");
    return {buffer_.data(), got};
  }

 private:
  File file_;
  std::vector<uint8_t> buffer_;
};

class Memory : public ByteSource {
 public:
  explicit Memory(std::span<const uint8_t> bytes) : bytes_(bytes) { total_ = bytes.size(); }

 protected:
  std::span<const uint8_t> next() override { return std::exchange(bytes_, {}); }

 private:
  std::span<const uint8_t> bytes_;
};

// What both decompressors share: the packed side of the stream and the guard against bombs.
class Unpacked : public ByteSource {
 protected:
  explicit Unpacked(File file)
      : file_(std::move(file)), packed_(kBufferBytes), plain_(kBufferBytes) {}

  bool load() {
    packed_size_ = std::fread(packed_.data(), 1, packed_.size(), file_.get());
    packed_total_ += packed_size_;
    return packed_size_ != 0;
  }
  std::span<const uint8_t> deliver(size_t size) {
    plain_total_ += size;
    if (plain_total_ > kRatioFreeBytes && plain_total_ / kMaxRatio > packed_total_)
      throw InputError("unpacks to more than 400 times its size; unpack it yourself if it is real");
    return {plain_.data(), size};
  }

  File file_;
  std::vector<uint8_t> packed_;
  std::vector<uint8_t> plain_;
  size_t packed_size_ = 0;

 private:
  uint64_t packed_total_ = 0;
  uint64_t plain_total_ = 0;
};

class ZstdFile : public Unpacked {
 public:
  explicit ZstdFile(File file) : Unpacked(std::move(file)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw InputError("cannot be unpacked: no memory");
  }
  ~ZstdFile() override { ZSTD_freeDStream(stream_); }
  ZstdFile(const ZstdFile&) = delete;
  ZstdFile& operator=(const ZstdFile&) = delete;

 protected:
  std::span<const uint8_t> next() override {
    ZSTD_outBuffer out{plain_.data(), plain_.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        if (!load()) {
          if (pending_ != 0) throw InputError("ends in the middle of its zstd data");
          return {};
        }
        in_ = {packed_.data(), packed_size_, 0};
      }
      pending_ = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(pending_) != 0)
        throw InputError(fmt::format("has damaged zstd data: {}", ZSTD_getErrorName(pending_)));
    }
    return deliver(out.pos);
  }

 private:
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t pending_ = 0;
};

#ifdef VRAMTRACK_HAVE_ZLIB
class GzipFile : public Unpacked {
 public:
  explicit GzipFile(File file) : Unpacked(std::move(file)) {
    constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: a gzip header, full window
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK)
      throw InputError("cannot be unpacked: no memory");
  }
  ~GzipFile() override { inflateEnd(&stream_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

 protected:
  std::span<const uint8_t> next() override {
    stream_.next_out = plain_.data();
    stream_.avail_out = static_cast<uInt>(plain_.size());
    while (stream_.avail_out == plain_.size() && !ended_) {
      if (stream_.avail_in == 0) {
        if (!load()) throw InputError("ends in the middle of its gzip data");
        stream_.next_in = packed_.data();
        stream_.avail_in = static_cast<uInt>(packed_size_);
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && !ended_) throw InputError("has damaged gzip data");
    }
    return deliver(plain_.size() - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  bool ended_ = false;
};
#endif

}  // namespace

std::unique_ptr<ByteSource> ByteSource::open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError("is a folder, not a file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw InputError(fmt::format("cannot be opened: {}", std::strerror(errno)));
  uint8_t magic[4] = {};
  const size_t got = std::fread(magic, 1, sizeof magic, file.get());
  std::rewind(file.get());
  constexpr uint8_t kZstdMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};
  if (got == 4 && std::equal(magic, magic + 4, kZstdMagic))
    return std::make_unique<ZstdFile>(std::move(file));
  if (got >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
#ifdef VRAMTRACK_HAVE_ZLIB
    return std::make_unique<GzipFile>(std::move(file));
#else
    throw InputError("is gzip data, and this build reads none; run gunzip on it first");
#endif
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  return std::make_unique<PlainFile>(std::move(file), error ? 0 : size);
}

std::unique_ptr<ByteSource> ByteSource::from_memory(std::span<const uint8_t> bytes) {
  return std::make_unique<Memory>(bytes);
}

bool ByteSource::refill() {
  const std::span<const uint8_t> bytes = next();
  at_ = bytes.data();
  end_ = bytes.data() + bytes.size();
  taken_ += bytes.size();
  return !bytes.empty();
}

bool ByteSource::read(void* out, size_t size) {
  auto* to = static_cast<uint8_t*>(out);
  while (size != 0) {
    if (at_ == end_ && !refill()) return false;
    const size_t part = std::min(size, static_cast<size_t>(end_ - at_));
    std::memcpy(to, at_, part);
    at_ += part;
    to += part;
    size -= part;
  }
  return true;
}

std::optional<std::string> ByteSource::line(size_t limit) {
  std::string text;
  while (text.size() <= limit) {
    const int byte = get();
    if (byte < 0) return std::nullopt;
    if (byte == '\n') return text;
    text.push_back(static_cast<char>(byte));
  }
  return std::nullopt;
}

std::span<const uint8_t> ByteSource::head() {
  if (at_ == end_) refill();
  return {at_, end_};
}

}  // namespace vramtrack
