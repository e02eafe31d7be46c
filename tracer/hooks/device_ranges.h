// Which addresses can be memory that a kernel works on: the granules of 2 MiB that the driver ever
// gave this process something in. A bitmap, so that the question costs a few instructions, takes no
// lock and may be asked anywhere; a granule is never forgotten, because the analyzer, which knows
// what lives when, has the last word.
#ifndef VRAMTRACK_TRACER_HOOKS_DEVICE_RANGES_H
#define VRAMTRACK_TRACER_HOOKS_DEVICE_RANGES_H

#include <vramtrack/trace_format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vramtrack {

inline constexpr unsigned kGranuleBits = 21;
inline constexpr unsigned kAddressBits = 47;  // of user space
inline constexpr size_t kGranuleWords = size_t{1} << (kAddressBits - kGranuleBits - 6);

// Eight megabytes of zeros, of which only touched pages exist.
extern constinit uint64_t g_granules[kGranuleWords];

inline bool is_device_address(uint64_t address) {
  const uint64_t granule = address >> kGranuleBits;
  if (granule >= kGranuleWords * 64) return false;
  const uint64_t word =
      std::atomic_ref<uint64_t>(g_granules[granule / 64]).load(std::memory_order_relaxed);
  return (word >> (granule % 64) & 1) != 0;
}

// Adds the memory of an event that tells of some.
void note_device_range(const Event& event);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_DEVICE_RANGES_H
