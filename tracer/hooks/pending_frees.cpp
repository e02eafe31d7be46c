#include "hooks/pending_frees.h"

#include <vramtrack/trace_format.h>

#include <atomic>

#include "record/recorder.h"

namespace vramtrack {
namespace {

constexpr int kMaxEvents = 8;        // streams that use one block
constexpr size_t kMaxBlocks = 4096;  // pending at once

struct Noted {
  const void* events[kMaxEvents] = {};
  int count = 0;
};

thread_local constinit Noted t_noted __attribute__((tls_model("initial-exec")));

// A block that waits. An entry is claimed by its address and freed by its last event.
struct Pending {
  std::atomic<uint64_t> address{0};  // 0: free entry
  std::atomic<int> waiting{0};
  std::atomic<int16_t> device{-1};
  std::atomic<const void*> events[kMaxEvents] = {};
};

constinit Pending g_pending[kMaxBlocks];
constinit std::atomic<size_t> g_limit{0};  // entries beyond it were never used
constinit std::atomic<size_t> g_count{0};  // how many wait, to keep the common case short

Pending* claim(uint64_t address) {
  for (size_t i = 0; i < kMaxBlocks; ++i) {
    uint64_t free = 0;
    if (!g_pending[i].address.compare_exchange_strong(free, address)) continue;
    size_t limit = g_limit.load(std::memory_order_relaxed);
    while (limit < i + 1 && !g_limit.compare_exchange_weak(limit, i + 1)) {
    }
    return &g_pending[i];
  }
  return nullptr;
}

void completed(Pending& pending) {
  Event event{.kind = EventKind::block_free_completed,
              .device = pending.device.load(std::memory_order_relaxed),
              .address = pending.address.load(std::memory_order_relaxed)};
  pending.address.store(0, std::memory_order_release);
  g_count.fetch_sub(1, std::memory_order_relaxed);
  record(event);
}

}  // namespace

void note_event_record(const void* event) {
  if (t_noted.count < kMaxEvents) t_noted.events[t_noted.count++] = event;
}

void forget_event_records() {
  t_noted.count = 0;
}

bool begin_pending_free(uint64_t address, int16_t device) {
  const int count = t_noted.count;
  t_noted.count = 0;
  if (count == 0) return false;
  Pending* pending = claim(address);
  if (pending == nullptr) return false;
  pending->device.store(device, std::memory_order_relaxed);
  for (int i = 0; i < kMaxEvents; ++i)
    pending->events[i].store(i < count ? t_noted.events[i] : nullptr, std::memory_order_relaxed);
  pending->waiting.store(count, std::memory_order_release);
  g_count.fetch_add(1, std::memory_order_release);
  return true;
}

void end_pending_event(const void* event) {
  if (g_count.load(std::memory_order_acquire) == 0) return;
  const size_t limit = g_limit.load(std::memory_order_acquire);
  for (size_t i = 0; i < limit; ++i) {
    Pending& pending = g_pending[i];
    if (pending.waiting.load(std::memory_order_acquire) == 0) continue;
    for (std::atomic<const void*>& waits_for : pending.events) {
      const void* expected = event;
      if (waits_for.compare_exchange_strong(expected, nullptr) &&
          pending.waiting.fetch_sub(1, std::memory_order_acq_rel) == 1)
        completed(pending);
    }
  }
}

void forget_pending_frees() {
  for (Pending& pending : g_pending) {
    if (pending.address.load(std::memory_order_relaxed) == 0) continue;
    pending.waiting.store(0, std::memory_order_relaxed);
    pending.address.store(0, std::memory_order_relaxed);
  }
  g_count.store(0, std::memory_order_relaxed);
  t_noted.count = 0;
}

}  // namespace vramtrack
