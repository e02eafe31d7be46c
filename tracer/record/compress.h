// zstd for sealed chunks, in memory of our own: nothing here touches the host's heap.
#ifndef VRAMTRACK_TRACER_RECORD_COMPRESS_H
#define VRAMTRACK_TRACER_RECORD_COMPRESS_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

// The compressed form of a buffer while the object lives. Without zstd in the build, when all
// workspaces are in use, or where compression gains nothing, data() is nullptr: store it raw.
class Compressed {
 public:
  Compressed(const void* raw, size_t bytes);
  ~Compressed();
  Compressed(const Compressed&) = delete;
  Compressed& operator=(const Compressed&) = delete;

  [[nodiscard]] const uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  struct Workspace* workspace_ = nullptr;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

void compress_after_fork();  // workspaces that other threads held at the fork are free again

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_COMPRESS_H
