// What the caching allocators of this process have handed out, per device, and the most of it since
// somebody asked: for programs that want to know while they run.
#ifndef VRAMTRACK_TRACER_RECORD_LIVE_TOTALS_H
#define VRAMTRACK_TRACER_RECORD_LIVE_TOTALS_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

inline constexpr size_t kCountedDevices = 64;

struct LiveTotal {
  int64_t bytes;
  int64_t most;
};

// A block came (positive) or went (negative). Devices beyond kCountedDevices are not counted.
void count_live(int16_t device, int64_t bytes);

LiveTotal live_total(size_t device);
void reset_most_live();

// In a child right after fork: a child has nothing of its parent's device memory.
void live_totals_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_LIVE_TOTALS_H
