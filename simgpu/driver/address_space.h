// Device addresses. They are cut from ranges that the process has reserved without access, so that
// no host pointer can ever equal one and a host access faults, as on a card.
#ifndef SIMGPU_DRIVER_ADDRESS_SPACE_H
#define SIMGPU_DRIVER_ADDRESS_SPACE_H

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace simgpu {

class AddressSpace {
 public:
  // 0 where no address space is left. `alignment` is a power of two.
  std::uint64_t take(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint = 0);
  void give_back(std::uint64_t address, std::uint64_t size);
  // Without a lock: every copy asks.
  bool contains(std::uint64_t address) const {
    int count = range_count_.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i)
      if (address - ranges_[i].start < ranges_[i].size) return true;
    return false;
  }

 private:
  bool grow(std::uint64_t size);
  std::uint64_t take_at(std::uint64_t address, std::uint64_t size);

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // start -> size, never adjacent
  // What was reserved of the process; only ever added to.
  static constexpr int kMaxRanges = 256;
  struct Range {
    std::uint64_t start, size;
  };
  Range ranges_[kMaxRanges] = {};
  std::atomic<int> range_count_{0};
};

// Every allocation begins on such a boundary, as cuMemAlloc does.
constexpr std::uint64_t kAllocationAlignment = 512;

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ADDRESS_SPACE_H
