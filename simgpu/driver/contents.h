// What is known of the bytes in device memory.
//
// Copies and sets of at most kKeptBytes keep their bytes, a page at a time; larger ones make the
// range unknown, and so does whoever stands in for a kernel (simgpu_forget). Reading gives zeros
// for unknown bytes. A kernel's own writes are not seen: bytes that were known before a launch are
// given as they were, and counted as assumed.
#ifndef SIMGPU_DRIVER_CONTENTS_H
#define SIMGPU_DRIVER_CONTENTS_H

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace simgpu {

class Contents {
 public:
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

  struct Read {
    std::size_t known = 0;  // bytes that a copy or set has written
    std::size_t stale = 0;  // of those, written before the latest launch
  };

  void write(std::uint64_t address, const void* data, std::size_t size);
  void fill(std::uint64_t address, const void* pattern, std::size_t pattern_size, std::size_t size);
  Read read(std::uint64_t address, void* data, std::size_t size);
  void copy(std::uint64_t to, std::uint64_t from, std::size_t size);
  void forget(std::uint64_t address, std::size_t size);

  void launched() { launches_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kPageSize = 4096;
  struct Page {
    unsigned char bytes[kPageSize] = {};
    std::bitset<kPageSize> known;
    std::uint64_t written_at = 0;  // launches when last written
  };

  std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by address / kPageSize
  std::atomic<std::size_t> page_count_{0};                // so that an empty store costs nothing
  std::atomic<std::uint64_t> launches_{0};
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_CONTENTS_H
