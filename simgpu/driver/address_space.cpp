#include "address_space.h"

#include <sys/mman.h>

#include <algorithm>

namespace simgpu {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{1} << 40;  // reserved at a time, less under a limit
constexpr std::uint64_t kPage = std::uint64_t{2} << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

bool AddressSpace::grow(std::uint64_t size) {
  if (range_count_.load(std::memory_order_relaxed) == kMaxRanges) return false;
  size = round_up(size, kPage) + kPage;
  for (std::uint64_t step = std::max(kStep, size); step >= size; step /= 2) {
    void* range =
        mmap(nullptr, step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    auto start = reinterpret_cast<std::uint64_t>(range);
    int count = range_count_.load(std::memory_order_relaxed);
    ranges_[count] = {start, step};
    range_count_.store(count + 1, std::memory_order_release);
    std::uint64_t usable = round_up(start, kPage);
    free_[usable] = start + step - usable;
    return true;
  }
  return false;
}

std::uint64_t AddressSpace::take_at(std::uint64_t address, std::uint64_t size) {
  auto next = free_.upper_bound(address);
  if (next == free_.begin()) return 0;
  auto [start, length] = *std::prev(next);
  if (address + size > start + length) return 0;
  free_.erase(std::prev(next));
  if (address > start) free_[start] = address - start;
  if (address + size < start + length) free_[address + size] = start + length - (address + size);
  return address;
}

std::uint64_t AddressSpace::take(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint) {
  size = round_up(std::max<std::uint64_t>(size, 1), kAllocationAlignment);
  alignment = std::max(alignment, kAllocationAlignment);
  if (size > std::uint64_t{1} << 46) return 0;
  std::lock_guard lock(mutex_);
  if (hint != 0 && hint % alignment == 0)
    if (std::uint64_t address = take_at(hint, size)) return address;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (auto [start, length] : free_) {
      std::uint64_t address = round_up(start, alignment);
      if (address + size <= start + length) return take_at(address, size);
    }
    if (!grow(size + alignment)) break;
  }
  return 0;
}

void AddressSpace::give_back(std::uint64_t address, std::uint64_t size) {
  size = round_up(std::max<std::uint64_t>(size, 1), kAllocationAlignment);
  std::lock_guard lock(mutex_);
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == address) {
      before->second += size;
      return;
    }
  }
  free_[address] = size;
}

}  // namespace simgpu
