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

const char* OutputFile::create(const char* path, std::string_view metadata, uint32_t slot_bytes,
                               uint32_t slot_count) {
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

  const uint64_t window_offset = round_up(sizeof(FileHeader) + metadata.size(), kPage);
  base_bytes_ = window_offset + size_t{slot_bytes} * slot_count;
  if (!map_window()) {
    const char* why = error_text(errno);
    unlink(path);
    abandon();
    return why;
  }
  header_ = reinterpret_cast<FileHeader*>(base_);
  window_ = base_ + window_offset;
  frame_end_.store(base_bytes_, std::memory_order_relaxed);

  std::memcpy(base_ + sizeof(FileHeader), metadata.data(), metadata.size());
  FileHeader& h = *header_;
  h.format_version = kFormatVersion;
  h.header_bytes = sizeof(FileHeader);
  h.metadata_bytes = static_cast<uint32_t>(metadata.size());
  h.slot_bytes = slot_bytes;
  h.slot_count = slot_count;
  h.window_offset = window_offset;
  h.frames_offset = base_bytes_;
  h.frames_end = base_bytes_;
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
  return verify_descriptor() && write_at(base_, sizeof(FileHeader) + header_->metadata_bytes, 0);
}

bool OutputFile::append_frame(FrameType type, const void* body, size_t bytes, bool compress) {
  static constexpr uint8_t kPadding[8] = {};
  const Compressed compressed(body, compress ? bytes : 0);
  const bool smaller = compress && compressed.data() != nullptr;
  const void* stored = smaller ? compressed.data() : body;
  const size_t stored_bytes = smaller ? compressed.size() : bytes;

  FrameHeader frame{};
  frame.magic = kFrameMagic;
  frame.type = static_cast<uint16_t>(type);
  frame.codec = static_cast<uint16_t>(smaller ? Codec::zstd : Codec::raw);
  frame.stored_bytes = static_cast<uint32_t>(stored_bytes);
  frame.raw_bytes = static_cast<uint32_t>(bytes);
  frame.checksum = crc32c(0, stored, stored_bytes);

  const size_t unpadded = sizeof frame + stored_bytes;
  const uint64_t total = round_up(unpadded, 8);
  const FileSizeSignalBlocked blocked;
  if (!verify_descriptor()) return false;
  const uint64_t at = frame_end_.fetch_add(total, std::memory_order_relaxed);
  // Header first and all in one call: a kill in the middle leaves a length to skip by.
  iovec parts[3] = {{&frame, sizeof frame},
                    {const_cast<void*>(stored), stored_bytes},
                    {const_cast<uint8_t*>(kPadding), total - unpadded}};
  ssize_t written = 0;
  do written = pwritev(fd_, parts, 3, static_cast<off_t>(at));
  while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(total)) {
    uint64_t end = at + total;  // give the space back, unless somebody took the next
    frame_end_.compare_exchange_strong(end, at, std::memory_order_relaxed);
    return false;
  }
  std::atomic_ref<uint64_t>(header_->frames_end).store(at + total, std::memory_order_relaxed);
  return true;
}

}  // namespace vramtrack
