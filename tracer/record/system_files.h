// Reads small files of /proc without stdio and without the heap.
#ifndef VRAMTRACK_TRACER_RECORD_SYSTEM_FILES_H
#define VRAMTRACK_TRACER_RECORD_SYSTEM_FILES_H

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace vramtrack {

// The number of bytes that were read; 0 where nothing could be.
inline size_t read_system_file(const char* path, char* buffer, size_t capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t size = 0;
  while (size < capacity) {
    const ssize_t got = read(fd, buffer + size, capacity - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  close(fd);
  return size;
}

// Whether a file holds a text, read piece by piece.
inline bool system_file_contains(const char* path, std::string_view text) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[8192];
  size_t kept = 0;  // the end of the last piece, in which the text may begin
  bool found = false;
  while (!found && text.size() <= sizeof buffer / 2) {
    const ssize_t got = read(fd, buffer + kept, sizeof buffer - kept);
    if (got <= 0) break;
    const size_t size = kept + static_cast<size_t>(got);
    found = std::string_view(buffer, size).find(text) != std::string_view::npos;
    const size_t keep = size < text.size() ? size : text.size() - 1;
    for (size_t i = 0; i < keep; ++i) buffer[i] = buffer[size - keep + i];
    kept = keep;
  }
  close(fd);
  return found;
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_SYSTEM_FILES_H
