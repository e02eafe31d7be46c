#include "record/ring.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "record/carry.h"
#include "record/config.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/text.h"

namespace vramtrack {
namespace {

constexpr uint32_t kEntriesPerEvent = 16;
constexpr size_t kPartBytes = 64 * 1024;
// What an entry takes in a part, about, and compressed less. Decides how much room is kept free for
// the rest of a snapshot.
constexpr uint64_t kEntryBytes = 64;
constexpr int kLockSpins = 300;
constexpr int kLockPauses = 4000;  // of half a millisecond: the holder may not get to run

struct Ring {
  uint64_t offset = 0;
  uint64_t area_bytes = 0;
  uint32_t generation = 0;  // that is being written
  uint64_t position = 0;    // in the file, for the next frame
  bool said_too_small = false;
};

// The snapshot that is being written.
struct Snapshot {
  bool active = false;
  bool failed = false;  // a part could not be written: this generation is no beginning
  uint32_t part = 0;
  uint32_t next = 0;  // index of the entry that comes next
  uint32_t limit = 0;
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  size_t used = 0;
};

constinit std::atomic<uint32_t> g_lock{0};
constinit Ring g_ring;
constinit Snapshot g_snapshot;
alignas(8) constinit uint8_t g_part[sizeof(SnapshotHeader) + kPartBytes] = {};

uint64_t area_begin(uint32_t generation) {
  return g_ring.offset + (generation - 1) % kRingAreas * g_ring.area_bytes;
}
uint64_t area_end() {
  return area_begin(g_ring.generation) + g_ring.area_bytes;
}

bool write_part(uint32_t flags) {
  SnapshotHeader header{};
  header.generation = g_ring.generation;
  header.part = g_snapshot.part;
  header.flags = flags;
  header.sequence = g_snapshot.sequence;
  header.time_ns = g_snapshot.time_ns;
  std::memcpy(g_part, &header, sizeof header);
  const uint64_t room = area_end() - g_ring.position;
  const uint64_t written =
      output_file().write_ring_frame(FrameType::snapshot, g_part, sizeof header + g_snapshot.used,
                                     g_ring.position, room, g_ring.generation);
  g_ring.position += written;
  g_snapshot.used = 0;
  ++g_snapshot.part;
  return written != 0;
}

void add(const CarriedEvent& made) {
  if (g_snapshot.failed) return;
  if (g_snapshot.used + kMaxCarriedBytes > kPartBytes && !write_part(0)) {
    g_snapshot.failed = true;
    return;
  }
  g_snapshot.used += encode_carried(made, g_part + sizeof(SnapshotHeader) + g_snapshot.used);
}

// An entry as it was when the snapshot began.
void add_entry(const LiveEntry& entry) {
  const uint64_t begin = g_snapshot.sequence;
  if (entry.kind != Carried::mapping) {
    CarriedEvent made = entry.made;
    if (entry.kernel_due) made.event.flags |= kEventKernelDue;
    add(made);
  }
  if (entry.segment_sequence != 0 && entry.segment_sequence < begin) {
    CarriedEvent segment = entry.made;
    segment.event = Event{.kind = EventKind::ring_segment,
                          .device = entry.made.event.device,
                          .thread = entry.made.event.thread,
                          .sequence = entry.segment_sequence,
                          .time_ns = entry.made.event.time_ns,
                          .address = entry.made.event.address,
                          .size = entry.made.event.size};
    add(segment);
  }
  if (entry.end_sequence == 0 || entry.end_sequence >= begin) return;
  CarriedEvent end = entry.made;
  const bool block = entry.kind == Carried::block;
  end.event = Event{.kind = block ? EventKind::block_free : EventKind::physical_free_begin,
                    .device = entry.made.event.device,
                    .thread = entry.end_thread,
                    .sequence = entry.end_sequence,
                    .time_ns = entry.end_time_ns,
                    .address = entry.made.event.address,
                    .size = block ? entry.made.event.size : 0,
                    .flags = block ? kEventPendingFree : 0U};
  add(end);
}

void complete_snapshot() {
  g_snapshot.active = false;
  for_each_ring_peak([](const CarriedEvent& peak) { add(peak); });
  if (!g_snapshot.failed) g_snapshot.failed = !write_part(kSnapshotComplete);
}

void advance(uint32_t entries) {
  LiveTable& table = live_table();
  for (; entries != 0 && g_snapshot.next < g_snapshot.limit; --entries) {
    LiveEntry& entry = table.at(g_snapshot.next);
    ring_save(entry);
    ++g_snapshot.next;
  }
  if (g_snapshot.next >= g_snapshot.limit) complete_snapshot();
}

uint64_t room_for_snapshot() {
  if (!g_snapshot.active) return 0;
  return (g_snapshot.limit - g_snapshot.next) * kEntryBytes + kPartBytes + sizeof(FrameHeader) +
         PeakTable::kMostDevices * PeakTable::kPeaks * 32;
}

// Says so once: the program may have fewer blocks later.
bool large_enough() {
  if (live_table().size() * kEntryBytes + 2 * kPartBytes <= g_ring.area_bytes) return true;
  if (!g_ring.said_too_small) {
    FixedText<256> text;
    text.add("the ring is too small for ").add(uint64_t{live_table().size()});
    text.add(" live blocks: events are lost until there are fewer; choose a larger --ring");
    say(text.c_str());
  }
  g_ring.said_too_small = true;
  return false;
}

// Begins the next generation, over the oldest.
bool turn_over() {
  if (!large_enough()) return false;
  const Ring before = g_ring;
  ++g_ring.generation;
  g_ring.position = area_begin(g_ring.generation);
  g_snapshot = Snapshot{};
  g_snapshot.limit = live_table().limit();
  g_snapshot.sequence = next_sequence().load(std::memory_order_relaxed);
  g_snapshot.time_ns = event_time_ns();
  if (!write_part(0)) {
    g_ring = before;
    g_snapshot = Snapshot{};
    return false;
  }
  g_snapshot.active = true;
  if (g_snapshot.limit == 0) complete_snapshot();
  return true;
}

}  // namespace

bool ring_on() {
  return config().ring_bytes != 0;
}

RingLock::RingLock() {
  if (!ring_on()) return;
  for (int i = 0; i < kLockSpins + kLockPauses; ++i) {
    if (g_lock.exchange(1, std::memory_order_acquire) == 0) return;
    if (i >= kLockSpins) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
      nanosleep(&pause, nullptr);
    } else if (i > 50) {
      sched_yield();
    }
  }
  held_ = false;
}

RingLock::~RingLock() {
  if (held_ && ring_on()) g_lock.store(0, std::memory_order_release);
}

bool ring_start() {
  g_lock.store(0, std::memory_order_relaxed);
  if (!ring_on()) return true;
  reset_carry();
  const RingHeader header = output_file().ring();
  g_ring = Ring{.offset = header.offset, .area_bytes = header.area_bytes};
  return turn_over();
}

void ring_finish() {
  const RingLock lock;
  if (!ring_on() || !lock.held()) return;
  if (g_snapshot.active) advance(~0U);
}

void ring_save(LiveEntry& entry) {
  if (!g_snapshot.active || entry.kind == Carried::none || entry.index < g_snapshot.next) return;
  if (entry.made.event.sequence >= g_snapshot.sequence || entry.written == g_ring.generation)
    return;
  entry.written = g_ring.generation;
  add_entry(entry);
}

void ring_advance() {
  if (g_snapshot.active) advance(kEntriesPerEvent);
}

bool ring_append(const void* chunk, size_t bytes) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const uint64_t left = area_end() - g_ring.position;
    const uint64_t reserved = room_for_snapshot();
    const uint64_t written = left <= reserved ? 0
                                              : output_file().write_ring_frame(
                                                    FrameType::chunk, chunk, bytes, g_ring.position,
                                                    left - reserved, g_ring.generation);
    g_ring.position += written;
    if (written != 0) return true;
    if (g_snapshot.active)
      advance(~0U);
    else if (!turn_over())
      return false;
  }
  return false;
}

}  // namespace vramtrack
