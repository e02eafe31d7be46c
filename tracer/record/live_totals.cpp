#include "record/live_totals.h"

#include <atomic>

namespace vramtrack {
namespace {

struct Total {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> most{0};
};

constinit Total g_totals[kCountedDevices];

}  // namespace

void count_live(int16_t device, int64_t bytes) {
  if (device < 0 || static_cast<size_t>(device) >= kCountedDevices) return;
  Total& total = g_totals[device];
  const int64_t now = total.bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t most = total.most.load(std::memory_order_relaxed);
  while (now > most && !total.most.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

LiveTotal live_total(size_t device) {
  if (device >= kCountedDevices) return {0, 0};
  return {g_totals[device].bytes.load(std::memory_order_relaxed),
          g_totals[device].most.load(std::memory_order_relaxed)};
}

void reset_most_live() {
  for (Total& total : g_totals) total.most.store(total.bytes.load(std::memory_order_relaxed));
}

void live_totals_after_fork_child() {
  for (Total& total : g_totals) {
    total.bytes.store(0, std::memory_order_relaxed);
    total.most.store(0, std::memory_order_relaxed);
  }
}

}  // namespace vramtrack
