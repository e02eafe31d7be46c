// The trace file of this process: header, window and appended frames (trace_format.h draws it).
//
// Two modes. Mapped: the window is a shared mapping, so that what a thread has stored there is in
// the file whatever happens to the process; its blocks are allocated beforehand, so that a full
// disk shows as an error here and not as SIGBUS in the host. Written: for file systems where a
// mapping can fault or lag (NFS, Lustre, FUSE): the window is private memory and each commit is a
// pwrite().
//
// The dangers: the host may close our descriptor and get its number for a file of its own, so the
// identity of the file is checked before each append. A file that somebody truncates would fault
// on the next store; its size is looked at now and then, which narrows the gap without closing it.
#ifndef VRAMTRACK_TRACER_RECORD_OUTPUT_FILE_H
#define VRAMTRACK_TRACER_RECORD_OUTPUT_FILE_H

#include <sys/stat.h>
#include <vramtrack/trace_format.h>

#include <atomic>
#include <string_view>

namespace vramtrack {

class OutputFile {
 public:
  // Creates the file, with areas for a ring where `ring_bytes` is not 0. Returns nullptr, or why it
  // cannot be written to.
  const char* create(const char* path, std::string_view metadata, uint32_t slot_bytes,
                     uint32_t slot_count, uint64_t ring_bytes, uint32_t ring_areas);
  // Forgets a file that belongs to the parent process, without writing to it.
  void abandon();

  [[nodiscard]] FileHeader* header() { return header_; }
  [[nodiscard]] RingHeader ring() const { return ring_; }
  [[nodiscard]] ChunkHeader* slot(uint32_t index) {
    return reinterpret_cast<ChunkHeader*>(window_ + size_t{index} * slot_bytes_);
  }
  [[nodiscard]] uint32_t slot_bytes() const { return slot_bytes_; }
  [[nodiscard]] uint32_t slot_count() const { return slot_count_; }

  // Makes `bytes` at `at`, inside the window, and then the slot's header part of the file. Free of
  // charge in mapped mode. False: they are not in the file.
  bool commit(const ChunkHeader* slot, const void* at, size_t bytes);
  // Likewise for the file's header.
  bool commit_header();
  bool append_frame(FrameType type, const void* body, size_t bytes, bool compress);
  // Writes a frame of the ring's current generation at `offset`. Returns its length; 0 where it is
  // longer than `room` or could not be written.
  uint64_t write_ring_frame(FrameType type, const void* body, size_t bytes, uint64_t offset,
                            uint64_t room, uint32_t generation);

  // False where the file was truncated or is no longer ours.
  bool intact();
  [[nodiscard]] uint64_t size() const { return frame_end_.load(std::memory_order_relaxed); }

 private:
  bool map_window();
  bool reserve(uint64_t bytes);
  bool verify_descriptor();
  bool write_at(const void* data, size_t bytes, uint64_t offset);
  bool write_frame(const struct FrameImage& frame, uint64_t offset);

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool mapped_ = false;
  uint8_t* base_ = nullptr;  // header page, then the window
  size_t base_bytes_ = 0;
  FileHeader* header_ = nullptr;
  RingHeader ring_{};
  uint8_t* window_ = nullptr;
  uint32_t slot_bytes_ = 0;
  uint32_t slot_count_ = 0;
  std::atomic<uint64_t> frame_end_{0};
  char path_[4096] = {};
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_OUTPUT_FILE_H
