#include "contents.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace simgpu {
namespace {

// Calls `visit(page, offset in page, offset in range, size)` for every page of the range.
template <class Visit>
void for_each_page(std::uint64_t address, std::size_t size, std::size_t page_size, Visit visit) {
  for (std::size_t done = 0; done < size;) {
    std::uint64_t page = (address + done) / page_size;
    std::size_t offset = (address + done) % page_size;
    std::size_t part = std::min(page_size - offset, size - done);
    visit(page, offset, done, part);
    done += part;
  }
}

}  // namespace

void Contents::write(std::uint64_t address, const void* data, std::size_t size) {
  if (size > kKeptBytes) return forget(address, size);
  std::lock_guard lock(mutex_);
  std::uint64_t now = launches_.load(std::memory_order_relaxed);
  for_each_page(address, size, kPageSize, [&](auto index, auto offset, auto done, auto part) {
    std::unique_ptr<Page>& page = pages_[index];
    if (page == nullptr) page = std::make_unique<Page>();
    std::memcpy(page->bytes + offset, static_cast<const unsigned char*>(data) + done, part);
    if (part == kPageSize) {
      page->known.set();
    } else {
      for (std::size_t i = offset; i < offset + part; ++i) page->known[i] = true;
    }
    page->written_at = now;
  });
  page_count_.store(pages_.size(), std::memory_order_relaxed);
}

void Contents::fill(std::uint64_t address, const void* pattern, std::size_t pattern_size,
                    std::size_t size) {
  if (size > kKeptBytes) return forget(address, size);
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i + pattern_size <= size; i += pattern_size)
    std::memcpy(bytes.data() + i, pattern, pattern_size);
  write(address, bytes.data(), size);
}

Contents::Read Contents::read(std::uint64_t address, void* data, std::size_t size) {
  Read result;
  std::memset(data, 0, size);
  if (page_count_.load(std::memory_order_relaxed) == 0 || size == 0) return result;
  std::lock_guard lock(mutex_);
  std::uint64_t now = launches_.load(std::memory_order_relaxed);
  auto page = pages_.lower_bound(address / kPageSize);
  for (; page != pages_.end() && page->first * kPageSize < address + size; ++page) {
    std::uint64_t start = std::max(address, page->first * kPageSize);
    std::uint64_t end = std::min(address + size, (page->first + 1) * kPageSize);
    std::size_t known = 0;
    for (std::uint64_t at = start; at < end; ++at) {
      if (!page->second->known[at % kPageSize]) continue;
      static_cast<unsigned char*>(data)[at - address] = page->second->bytes[at % kPageSize];
      ++known;
    }
    result.known += known;
    if (page->second->written_at != now) result.stale += known;
  }
  return result;
}

void Contents::copy(std::uint64_t to, std::uint64_t from, std::size_t size) {
  if (page_count_.load(std::memory_order_relaxed) == 0) return;
  if (size > kKeptBytes) return forget(to, size);
  // Byte by byte knowledge: what was unknown at the source is unknown at the destination.
  std::vector<unsigned char> bytes(size);
  std::vector<bool> known(size);
  {
    std::lock_guard lock(mutex_);
    for_each_page(from, size, kPageSize, [&](auto index, auto offset, auto done, auto part) {
      auto page = pages_.find(index);
      if (page == pages_.end()) return;
      std::memcpy(bytes.data() + done, page->second->bytes + offset, part);
      for (std::size_t i = 0; i < part; ++i) known[done + i] = page->second->known[offset + i];
    });
  }
  forget(to, size);
  for (std::size_t start = 0; start < size;) {
    std::size_t end = start;
    while (end < size && known[end] == known[start]) ++end;
    if (known[start]) write(to + start, bytes.data() + start, end - start);
    start = end;
  }
}

void Contents::forget(std::uint64_t address, std::size_t size) {
  if (page_count_.load(std::memory_order_relaxed) == 0 || size == 0) return;
  std::lock_guard lock(mutex_);
  auto page = pages_.lower_bound(address / kPageSize);
  while (page != pages_.end() && page->first * kPageSize < address + size) {
    std::uint64_t start = std::max(address, page->first * kPageSize);
    std::uint64_t end = std::min(address + size, (page->first + 1) * kPageSize);
    if (end - start < kPageSize)
      for (std::uint64_t at = start; at < end; ++at) page->second->known[at % kPageSize] = false;
    bool empty = end - start == kPageSize || page->second->known.none();
    page = empty ? pages_.erase(page) : std::next(page);
  }
  page_count_.store(pages_.size(), std::memory_order_relaxed);
}

}  // namespace simgpu
