#include "record/slots.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/ring.h"

namespace vramtrack {
namespace {

constexpr uint32_t kNoSlot = ~0U;
constexpr uint32_t kDefinitionSlot = kDefaultSlotCount - 1;
constexpr uint64_t kRetryNs = 1'000'000'000;
constexpr int kLockAttempts = 300;  // then the slot is left to whoever holds it
constexpr int kAcquireRounds = 16;

struct Thread {
  uint32_t epoch = 0;  // of the file that the rest belongs to
  uint32_t slot = kNoSlot;
  uint32_t number = 0;
  uint32_t tid = 0;
  bool introduced = false;
};

thread_local constinit Thread t_thread __attribute__((tls_model("initial-exec")));

constinit Slot g_slots[kDefaultSlotCount];
constinit std::atomic<uint32_t> g_next_thread{1};
constinit std::atomic<uint64_t> g_seals{0};
constinit pthread_key_t g_exit_key = 0;
constinit bool g_have_exit_key = false;

Thread& current_thread() {
  Thread& t = t_thread;
  const uint32_t epoch = recording_epoch();
  if (t.epoch != epoch) {
    t = Thread{};
    t.epoch = epoch;
    t.number = g_next_thread.fetch_add(1, std::memory_order_relaxed);
    t.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return t;
}

bool try_lock(Slot& slot) {
  return slot.lock.exchange(1, std::memory_order_acquire) == 0;
}

bool lock(Slot& slot) {
  for (int i = 0; i < kLockAttempts; ++i) {
    if (try_lock(slot)) return true;
    if (i > 50) sched_yield();
  }
  return false;
}

bool is_gone(uint32_t tid) {
  return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

// Slots that threads write their events to.
uint32_t thread_slots() {
  return ring_on() ? kDefinitionSlot : kDefaultSlotCount;
}

void set_used(Slot& slot, uint32_t used) {
  ChunkHeader* chunk = output_file().slot(slot.index);
  std::atomic_ref<uint32_t>(chunk->used_bytes).store(used, std::memory_order_release);
}

// An empty chunk of the slot's owner. The bytes of the last one stay behind `used_bytes`, unread.
void open_chunk(Slot& slot) {
  OutputFile& file = output_file();
  ChunkHeader* chunk = file.slot(slot.index);
  set_used(slot, 0);
  slot.used = 0;
  slot.events = 0;
  slot.opened_at_seal = g_seals.load(std::memory_order_relaxed);
  chunk->magic = kChunkMagic;
  chunk->slot = slot.index;
  chunk->generation = ++slot.generation;
  chunk->thread = slot.owner;
  chunk->flags = 0;
  chunk->first_sequence = next_sequence().load(std::memory_order_relaxed);
  chunk->last_sequence = chunk->first_sequence;
  chunk->first_time_ns = trace_time_ns();
  slot.codec = CodecState::at(*chunk);
  file.commit(chunk, chunk, sizeof *chunk);
}

// Turns the chunk into a frame and opens the next. Where that fails, for want of space, the chunk
// stays as it is, readable in the window, and the slot takes no more until a later attempt works.
bool seal(Slot& slot) {
  if (slot.used == 0) {
    open_chunk(slot);
    return true;
  }
  if (slot.refused_at_ns != 0 && trace_time_ns() - slot.refused_at_ns < kRetryNs) return false;
  const ChunkHeader* chunk = output_file().slot(slot.index);
  const size_t bytes = sizeof *chunk + slot.used;
  const bool written =
      slot.index < thread_slots() && ring_on()
          ? ring_append(chunk, bytes)
          : output_file().append_frame(FrameType::chunk, chunk, bytes, /*compress=*/true);
  slot.refused_at_ns = written ? 0 : trace_time_ns();
  if (!written) return false;
  g_seals.fetch_add(1, std::memory_order_relaxed);
  open_chunk(slot);
  return true;
}

// Chunks that were opened long ago hold old events that a reader must merge with new ones: sealing
// them bounds how far back it has to look.
void seal_idle_slots(const Slot& mine) {
  const uint64_t seals = g_seals.load(std::memory_order_relaxed);
  for (Slot& slot : g_slots) {
    if (&slot == &mine || !try_lock(slot)) continue;
    if (slot.used != 0 && seals - slot.opened_at_seal > uint64_t{2} * kDefaultSlotCount) seal(slot);
    unlock_slot(slot);
  }
}

void take(Slot& slot, uint32_t index, Thread& t) {
  slot.index = index;
  slot.owner = t.number;
  slot.owner_tid = t.tid;
  open_chunk(slot);
  t.slot = index;
  if (g_have_exit_key) pthread_setspecific(g_exit_key, &t_thread);
}

// Takes the first slot that `may_take` accepts, sealing what it holds.
template <class Accept>
bool take_slot(Thread& t, Accept may_take) {
  for (uint32_t i = 0; i < thread_slots(); ++i) {
    const uint32_t index = (t.number + i) % thread_slots();
    Slot& slot = g_slots[index];
    if (!try_lock(slot)) continue;
    if (may_take(slot) && (slot.used == 0 || seal(slot))) {
      take(slot, index, t);
      return true;  // still locked
    }
    unlock_slot(slot);
  }
  return false;
}

uint64_t oldest_use() {
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t i = 0; i < thread_slots(); ++i) {
    Slot& slot = g_slots[i];
    if (!try_lock(slot)) continue;
    if (slot.last_time_ns < oldest && slot.refused_at_ns == 0) oldest = slot.last_time_ns;
    unlock_slot(slot);
  }
  return oldest;
}

// The slot that nobody owns, that a thread left that no longer exists, or that was idle longest.
Slot* acquire_slot(Thread& t) {
  bool taken =
      take_slot(t, [](const Slot& s) { return s.owner == 0 && s.used == 0; }) ||
      take_slot(t, [](const Slot& s) { return s.owner == 0; }) ||
      take_slot(t, [&t](const Slot& s) { return s.owner_tid == t.tid || is_gone(s.owner_tid); });
  // With more busy threads than slots the oldest may be in use again before it is taken, or held by
  // a thread that does not run just now.
  for (int i = 0; i < kAcquireRounds && !taken; ++i) {
    if (i > 3) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
      nanosleep(&pause, nullptr);
    }
    const uint64_t oldest = oldest_use();
    taken = take_slot(t, [oldest](const Slot& s) { return s.last_time_ns <= oldest; });
  }
  return taken ? &g_slots[t.slot] : nullptr;
}

void thread_exits(void* /*thread*/) {
  const Guard guard;
  Thread& t = t_thread;
  if (t.epoch != recording_epoch() || t.slot == kNoSlot) return;
  Slot& slot = g_slots[t.slot];
  if (!lock(slot)) return;
  if (slot.owner == t.number) slot.owner = 0;
  unlock_slot(slot);
  t.slot = kNoSlot;
}

}  // namespace

Slot* lock_own_slot(size_t bytes) {
  Thread& t = current_thread();
  const size_t capacity = output_file().slot_bytes() - sizeof(ChunkHeader);
  if (bytes > capacity) return nullptr;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Slot* slot = nullptr;
    if (t.slot == kNoSlot) {
      slot = acquire_slot(t);
      if (slot == nullptr) return nullptr;
    } else {
      slot = &g_slots[t.slot];
      if (!lock(*slot)) {  // somebody seals it and does not get to run
        t.slot = kNoSlot;
        continue;
      }
      if (slot->owner != t.number) {  // it was idle and another thread needed it
        unlock_slot(*slot);
        t.slot = kNoSlot;
        continue;
      }
    }
    if (slot->used + bytes <= capacity) return slot;
    if (seal(*slot)) {
      seal_idle_slots(*slot);
      return slot;
    }
    unlock_slot(*slot);
    return nullptr;
  }
  return nullptr;
}

Slot* lock_definition_slot(size_t bytes) {
  if (!ring_on()) return lock_own_slot(bytes);
  const size_t capacity = output_file().slot_bytes() - sizeof(ChunkHeader);
  Slot& slot = g_slots[kDefinitionSlot];
  if (bytes > capacity || !lock(slot)) return nullptr;
  if (slot.generation == 0) open_chunk(slot);
  if (slot.used + bytes <= capacity || seal(slot)) return &slot;
  unlock_slot(slot);
  return nullptr;
}

void unlock_slot(Slot& slot) {
  slot.lock.store(0, std::memory_order_release);
}

uint8_t* slot_position(Slot& slot) {
  return reinterpret_cast<uint8_t*>(output_file().slot(slot.index)) + sizeof(ChunkHeader) +
         slot.used;
}

bool commit_record(Slot& slot, size_t bytes, bool is_event) {
  OutputFile& file = output_file();
  ChunkHeader* chunk = file.slot(slot.index);
  const uint8_t* at = slot_position(slot);
  if (is_event)
    chunk->last_sequence = slot.codec.sequence;
  else
    chunk->flags |= kChunkHasDefinitions;
  set_used(slot, slot.used + static_cast<uint32_t>(bytes));
  if (!file.commit(chunk, at, bytes)) {
    set_used(slot, slot.used);
    return false;
  }
  slot.used += static_cast<uint32_t>(bytes);
  if (is_event) {
    ++slot.events;
    slot.last_time_ns = slot.codec.time_ns;
  }
  return true;
}

uint32_t thread_number() {
  return current_thread().number;
}

bool take_thread_introduction(uint32_t& thread, uint32_t& tid) {
  Thread& t = current_thread();
  if (t.introduced) return false;
  t.introduced = true;
  thread = t.number;
  tid = t.tid;
  return true;
}

void seal_all_slots() {
  const RingLock ring;
  if (!ring.held()) return;
  for (Slot& slot : g_slots) {
    if (!lock(slot)) continue;
    if (slot.used != 0) seal(slot);
    unlock_slot(slot);
  }
}

void reset_slots() {
  for (uint32_t i = 0; i < kDefaultSlotCount; ++i) {
    Slot& slot = g_slots[i];
    slot.index = i;
    slot.owner = slot.owner_tid = slot.generation = slot.used = slot.events = 0;
    slot.opened_at_seal = slot.last_time_ns = slot.refused_at_ns = 0;
    slot.codec = CodecState{};
    slot.lock.store(0, std::memory_order_relaxed);
  }
  g_next_thread.store(1, std::memory_order_relaxed);
  g_seals.store(0, std::memory_order_relaxed);
}

void initialize_thread_exit() {
  g_have_exit_key = pthread_key_create(&g_exit_key, thread_exits) == 0;
}

}  // namespace vramtrack
