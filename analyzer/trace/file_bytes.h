// The bytes of a file, read at offsets. Not mapped: the file may be cut short by others while we
// read it, which a mapping answers with SIGBUS and a read with fewer bytes.
#ifndef VRAMTRACK_ANALYZER_TRACE_FILE_BYTES_H
#define VRAMTRACK_ANALYZER_TRACE_FILE_BYTES_H

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace vramtrack {

class FileBytes {
 public:
  // Throws InputError where the file cannot be read or is a directory.
  explicit FileBytes(const std::filesystem::path& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t size() const { return size_; }  // when it was opened

  // Fills `out` from `offset`; returns how many bytes there were.
  size_t read(uint64_t offset, std::span<uint8_t> out) const;
  // All or nothing.
  [[nodiscard]] bool read_exactly(uint64_t offset, std::span<uint8_t> out) const {
    return read(offset, out) == out.size();
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_TRACE_FILE_BYTES_H
