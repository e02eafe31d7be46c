#include "record/output_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "record/compress.h"
#include "record/config.h"
#include "record/crc32c.h"
#include "record/error_text.h"
#include "record/file_size_signal.h"

namespace vramtrack {
namespace {

constexpr size_t kPage = 4096;

constexpr uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// File systems on which a shared mapping may fault, or be seen late by others.
bool mapping_is_unsafe(int fd) {
  struct statfs info {};
  if (fstatfs(fd, &info) != 0) return true;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x0bd00bd0:  // Lustre
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB2
    case 0x65735546:  // FUSE
    case 0x01021997:  // 9p
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x00c36400:  // Ceph
    case 0x5346414f:  // AFS
      return true;
    default:
      return false;
  }
}

// Out of the way of the numbers that programs expect to get, and shells to use.
int move_up(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 700);
  if (high < 0) return fd;
  close(fd);
  return high;
}

}  // namespace

// A frame before it has a place.
struct FrameImage {
  FrameImage(FrameType type, const void* raw, size_t bytes, bool compress)
      : compressed(raw, compress ? bytes : 0) {
    const bool smaller = compress && compressed.data() != nullptr;
    body = smaller ? compressed.data() : raw;
    body_bytes = smaller ? compressed.size() : bytes;
    header.magic = kFrameMagic;
    header.type = static_cast<uint16_t>(type);
    header.codec = static_cast<uint16_t>(smaller ? Codec::zstd : Codec::raw);
    header.stored_bytes = static_cast<uint32_t>(body_bytes);
    header.raw_bytes = static_cast<uint32_t>(bytes);
    header.checksum = crc32c(0, body, body_bytes);
  }
  [[nodiscard]] uint64_t total() const { return round_up(sizeof header + body_bytes, 8); }

  const Compressed compressed;
  FrameHeader header{};
  const void* body = nullptr;
  size_t body_bytes = 0;
};

const char* OutputFile::create(const char* path, std::string_view metadata, uint32_t slot_bytes,
                               uint32_t slot_count, uint64_t ring_bytes, uint32_t ring_areas) {
  abandon();
  const size_t path_bytes = std::strlen(path) + 1;
  if (path_bytes > sizeof path_) return "its path is too long";
  std::memcpy(path_, path, path_bytes);
  slot_bytes_ = slot_bytes;
  slot_count_ = slot_count;

  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return error_text(errno);
  fd_ = move_up(fd);
  struct stat status {};
  if (fstat(fd_, &status) != 0) return error_text(errno);
  device_ = status.st_dev;
  inode_ = status.st_ino;

  const bool ring = ring_bytes != 0;
  const size_t header_bytes = sizeof(FileHeader) + (ring ? sizeof(RingHeader) : 0);
  const uint64_t window_offset = round_up(header_bytes + metadata.size(), kPage);
  base_bytes_ = window_offset + size_t{slot_bytes} * slot_count;
  ring_ = RingHeader{};
  if (ring)
    ring_ = {.offset = base_bytes_,
             .area_bytes = round_up(ring_bytes / ring_areas, kPage),
             .area_count = ring_areas,
             .reserved = 0};
  const uint64_t frames_offset = base_bytes_ + ring_.area_bytes * ring_.area_count;
  if (!map_window() || (ring && !reserve(frames_offset))) {
    const char* why = error_text(errno);
    unlink(path);
    abandon();
    return why;
  }
  header_ = reinterpret_cast<FileHeader*>(base_);
  window_ = base_ + window_offset;
  frame_end_.store(frames_offset, std::memory_order_relaxed);

  std::memcpy(base_ + sizeof(FileHeader), &ring_, header_bytes - sizeof(FileHeader));
  std::memcpy(base_ + header_bytes, metadata.data(), metadata.size());
  FileHeader& h = *header_;
  h.format_version = kFormatVersion;
  h.header_bytes = static_cast<uint32_t>(header_bytes);
  h.flags = ring ? kFileRing : 0U;
  h.metadata_bytes = static_cast<uint32_t>(metadata.size());
  h.slot_bytes = slot_bytes;
  h.slot_count = slot_count;
  h.window_offset = window_offset;
  h.frames_offset = frames_offset;
  h.frames_end = frames_offset;
  return nullptr;
}

bool OutputFile::map_window() {
  mapped_ = !config().write_mode && !mapping_is_unsafe(fd_);
  if (mapped_) {
    const FileSizeSignalBlocked blocked;
    // The system call itself: the library's emulation would write each page of a file system that
    // cannot allocate.
    if (fallocate(fd_, 0, 0, static_cast<off_t>(base_bytes_)) != 0) {
      if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
      mapped_ = false;
    }
  }
  if (!mapped_) {
    const FileSizeSignalBlocked blocked;  // readers expect the window to be there in full
    if (ftruncate(fd_, static_cast<off_t>(base_bytes_)) != 0) return false;
  }
  const int flags = mapped_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* base = mmap(nullptr, base_bytes_, PROT_READ | PROT_WRITE, flags, mapped_ ? fd_ : -1, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<uint8_t*>(base);
  // A core dump of the host has no use for it.
  madvise(base, base_bytes_, MADV_DONTDUMP);
  return true;
}

// Up to here the file exists, without taking room on the disk.
bool OutputFile::reserve(uint64_t bytes) {
  const FileSizeSignalBlocked blocked;
  return ftruncate(fd_, static_cast<off_t>(bytes)) == 0;
}

void OutputFile::abandon() {
  if (base_ != nullptr) munmap(base_, base_bytes_);
  if (fd_ >= 0 && verify_descriptor()) close(fd_);
  fd_ = -1;
  base_ = nullptr;
  header_ = nullptr;
  window_ = nullptr;
}

bool OutputFile::verify_descriptor() {
  struct stat status {};
  if (fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) return true;
  // The host closed it, with closefrom() for example. Whatever has the number now is not ours.
  const int fd = open(path_, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    close(fd);
    return false;
  }
  fd_ = move_up(fd);
  return true;
}

bool OutputFile::intact() {
  struct stat status {};
  return verify_descriptor() && fstat(fd_, &status) == 0 &&
         (!mapped_ || static_cast<uint64_t>(status.st_size) >= base_bytes_);
}

bool OutputFile::write_at(const void* data, size_t bytes, uint64_t offset) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (bytes != 0) {
    const ssize_t written = pwrite(fd_, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool OutputFile::commit(const ChunkHeader* slot, const void* at, size_t bytes) {
  if (mapped_) return true;
  const FileSizeSignalBlocked blocked;
  const auto offset = [this](const void* p) {
    return static_cast<uint64_t>(static_cast<const uint8_t*>(p) - base_);
  };
  return verify_descriptor() && write_at(at, bytes, offset(at)) &&
         write_at(slot, sizeof(ChunkHeader), offset(slot));
}

bool OutputFile::commit_header() {
  if (mapped_) return true;
  const FileSizeSignalBlocked blocked;
  return verify_descriptor() &&
         write_at(base_, size_t{header_->header_bytes} + header_->metadata_bytes, 0);
}

// Header first and all in one call: a kill in the middle leaves a length to skip by.
bool OutputFile::write_frame(const FrameImage& frame, uint64_t offset) {
  static constexpr uint8_t kPadding[8] = {};
  const size_t unpadded = sizeof frame.header + frame.body_bytes;
  iovec parts[3] = {{const_cast<FrameHeader*>(&frame.header), sizeof frame.header},
                    {const_cast<void*>(frame.body), frame.body_bytes},
                    {const_cast<uint8_t*>(kPadding), frame.total() - unpadded}};
  ssize_t written = 0;
  do written = pwritev(fd_, parts, 3, static_cast<off_t>(offset));
  while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(frame.total());
}

bool OutputFile::append_frame(FrameType type, const void* body, size_t bytes, bool compress) {
  const FrameImage frame(type, body, bytes, compress);
  const FileSizeSignalBlocked blocked;
  if (!verify_descriptor()) return false;
  const uint64_t at = frame_end_.fetch_add(frame.total(), std::memory_order_relaxed);
  if (!write_frame(frame, at)) {
    uint64_t end = at + frame.total();  // give the space back, unless somebody took the next
    frame_end_.compare_exchange_strong(end, at, std::memory_order_relaxed);
    return false;
  }
  std::atomic_ref<uint64_t>(header_->frames_end)
      .store(at + frame.total(), std::memory_order_relaxed);
  return true;
}

uint64_t OutputFile::write_ring_frame(FrameType type, const void* body, size_t bytes,
                                      uint64_t offset, uint64_t room, uint32_t generation) {
  FrameImage frame(type, body, bytes, /*compress=*/true);
  frame.header.ring_generation = generation;
  if (frame.total() > room) return 0;
  const FileSizeSignalBlocked blocked;
  return verify_descriptor() && write_frame(frame, offset) ? frame.total() : 0;
}

}  // namespace vramtrack
