// Memory of the tracer's own, straight from the kernel: the host's allocator may be the caller.
#ifndef VRAMTRACK_TRACER_RECORD_PAGES_H
#define VRAMTRACK_TRACER_RECORD_PAGES_H

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace vramtrack {

// Zeroed pages that cost nothing until they are touched; nullptr where there are none.
inline void* map_pages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

inline void unmap_pages(void* pages, size_t bytes) {
  munmap(pages, bytes);
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_PAGES_H
