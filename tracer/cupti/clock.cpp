#include "cupti/clock.h"

#include <atomic>

#include "record/recorder.h"

namespace vramtrack {
namespace {

// CUPTI's time minus the trace's.
constinit std::atomic<uint64_t> g_offset{0};

}  // namespace

void measure_cupti_clock(const CuptiFunctions& cupti) {
  uint64_t now = 0;
  if (cupti.cuptiGetTimestamp == nullptr) return;
  const uint64_t before = trace_time_ns();
  if (cupti.cuptiGetTimestamp(&now) != CUPTI_SUCCESS) return;
  const uint64_t after = trace_time_ns();
  g_offset.store(now - (before + (after - before) / 2), std::memory_order_relaxed);
}

uint64_t trace_time_of(uint64_t cupti_ns) {
  if (cupti_ns == 0) return 0;
  const uint64_t time = cupti_ns - g_offset.load(std::memory_order_relaxed);
  return static_cast<int64_t>(time) < 0 ? 0 : time;
}

}  // namespace vramtrack
