#include "record/carry.h"

#include "record/recorder.h"
#include "record/ring.h"

namespace vramtrack {
namespace {

constexpr size_t kMostPhases = 256;  // open at once, in all threads
constexpr int kMostWaiting = 128;    // made by a thread between two of its kernels

struct OpenPhase {
  uint32_t thread = 0;
  uint32_t text = 0;
  uint32_t depth = 0;
};

// Entries that wait for the next kernel of their thread: it is taken for the one they are for.
struct Waiting {
  uint32_t epoch = 0;
  int count = 0;
  uint32_t entries[kMostWaiting] = {};  // indexes
};

constinit LiveTable g_table;
constinit PeakTable g_peaks{};
constinit OpenPhase g_phases[kMostPhases] = {};
constinit size_t g_phase_count = 0;
constinit uint64_t g_step_plus_1 = 0;
thread_local constinit Waiting t_waiting __attribute__((tls_model("initial-exec")));

void remove(LiveEntry* entry) {
  if (entry == nullptr) return;
  ring_save(*entry);
  g_table.erase(*entry);
}

LiveEntry* put(Carried kind, const CarriedEvent& made) {
  remove(g_table.find(kind, key_of(kind, made.event)));
  LiveEntry* entry = g_table.insert(kind, made);
  if (entry == nullptr) count_dropped(1);  // no memory: the ring will not know of it
  return entry;
}

// The innermost phase of the thread, or the newest of the process.
uint32_t phase_of(uint32_t thread) {
  for (size_t i = g_phase_count; i-- > 0;)
    if (g_phases[i].thread == thread) return g_phases[i].text;
  return g_phase_count == 0 ? 0 : g_phases[g_phase_count - 1].text;
}

void push_phase(const Event& event) {
  if (g_phase_count == kMostPhases) return;
  OpenPhase& phase = g_phases[g_phase_count];
  phase = {event.thread, event.text, 1};
  for (size_t i = g_phase_count; i-- > 0;) {
    if (g_phases[i].thread != event.thread) continue;
    phase.depth = g_phases[i].depth + 1;
    break;
  }
  ++g_phase_count;
  CarriedEvent made{.event = event};
  made.event.extra = phase.depth;
  put(Carried::phase, made);
}

void pop_phase(const Event& event) {
  for (size_t i = g_phase_count; i-- > 0;) {
    if (g_phases[i].thread != event.thread) continue;
    Event key = event;
    key.extra = g_phases[i].depth;
    remove(g_table.find(Carried::phase, key_of(Carried::phase, key)));
    for (--g_phase_count; i < g_phase_count; ++i) g_phases[i] = g_phases[i + 1];
    return;
  }
}

void offer_peak(RingPeak what, const Event& event, uint64_t value) {
  if (event.device < 0 || event.device >= PeakTable::kMostDevices) return;
  CarriedEvent& peak = g_peaks.peaks[event.device][static_cast<uint64_t>(what) - 1];
  if (value <= peak.event.size) return;
  peak.event = Event{.kind = EventKind::ring_peak,
                     .device = event.device,
                     .sequence = event.sequence,
                     .time_ns = event.time_ns,
                     .size = value,
                     .object = static_cast<uint64_t>(what),
                     .extra = g_step_plus_1};
}

void count_driver(const Event& event, bool more) {
  const bool on_device = event.memory == Memory::device || event.memory == Memory::array ||
                         event.memory == Memory::pool;
  if (!on_device || event.device < 0 || event.device >= PeakTable::kMostDevices) return;
  uint64_t& live = g_peaks.driver_live[event.device];
  live = more ? live + event.size : live - event.size;
  if (more) offer_peak(RingPeak::driver, event, live);
}

void await_kernel(LiveEntry* entry) {
  if (entry == nullptr) return;
  Waiting& waiting = t_waiting;
  if (waiting.epoch != recording_epoch()) waiting = Waiting{.epoch = recording_epoch()};
  if (waiting.count == kMostWaiting) return;
  waiting.entries[waiting.count++] = entry->index;
  entry->kernel_due = true;
}

// A part of the snapshot that tells of an entry before its kernel came says so, and the kernel is
// among the events of the ring; one that is written later has the kernel with it.
void kernel_launched(const Event& event, uint32_t name) {
  Waiting& waiting = t_waiting;
  if (waiting.epoch != recording_epoch()) return;
  for (int i = 0; i < waiting.count; ++i) {
    // The place of one that is gone may be another's by now, who waits for a thread of its own.
    LiveEntry& entry = g_table.at(waiting.entries[i]);
    if (!entry.kernel_due || entry.made.event.thread != event.thread) continue;
    entry.kernel_due = false;
    entry.made.kernel = name;
  }
  waiting.count = 0;
}

// The first block of a segment begins where the segment does.
void note_segment(Carried kind, const Event& block) {
  LiveEntry* memory = g_table.find(kind, block.address);
  if (memory != nullptr && memory->segment_sequence == 0) memory->segment_sequence = block.sequence;
}

void block_allocated(const Event& event) {
  note_segment(Carried::physical, event);
  note_segment(Carried::mapping, event);
  await_kernel(put(Carried::block, carried(event)));
}

void block_freed(const Event& event) {
  LiveEntry* entry = g_table.find(Carried::block, event.address);
  if (entry == nullptr) return;
  if ((event.flags & kEventPendingFree) == 0) return remove(entry);
  ring_save(*entry);
  entry->end_sequence = event.sequence;
  entry->end_time_ns = event.time_ns;
  entry->end_thread = event.thread;
}

void driver_free_begun(const Event& event) {
  LiveEntry* entry = g_table.find(Carried::physical, event.address);
  if (entry == nullptr) return;
  ring_save(*entry);
  entry->end_sequence = event.sequence;
  entry->end_time_ns = event.time_ns;
  entry->end_thread = event.thread;
}

// A free that began before somebody else got the same address has nothing to end any more.
void driver_free_ended(const Event& event) {
  LiveEntry* entry = g_table.find(Carried::physical, event.address);
  if (entry == nullptr || entry->end_sequence == 0 || entry->end_thread != event.thread) return;
  if (event.result == 0) {
    count_driver(entry->made.event, false);
    return remove(entry);
  }
  ring_save(*entry);
  entry->end_sequence = 0;
}

void driver_allocated(const Event& event) {
  LiveEntry* old = g_table.find(Carried::physical, event.address);
  if (old != nullptr) count_driver(old->made.event, false);
  await_kernel(put(Carried::physical, carried(event)));
  count_driver(event, true);
}

void sampled(const Event& event) {
  if (g_table.find(Carried::first_sample, key_of(Carried::first_sample, event)) == nullptr)
    put(Carried::first_sample, carried(event));
  else
    put(Carried::last_sample, carried(event));
  if (event.extra >= event.size) offer_peak(RingPeak::used, event, event.extra - event.size);
}

}  // namespace

LiveTable& live_table() {
  return g_table;
}

PeakTable& peak_table() {
  return g_peaks;
}

CarriedEvent carried(const Event& event) {
  CarriedEvent made{.event = event};
  // They speak of the moment, not of the block.
  made.event.witness_allocated = made.event.witness_reserved = 0;
  made.step_plus_1 = g_step_plus_1;
  made.phase = phase_of(event.thread);
  return made;
}

bool must_be_kept(EventKind kind) {
  switch (kind) {
    case EventKind::handle_create:
    case EventKind::handle_release:
    case EventKind::handle_retain:
    case EventKind::map:
    case EventKind::unmap:
    case EventKind::address_reserve:
    case EventKind::address_free:
    case EventKind::pool_create:
    case EventKind::pool_destroy:
    case EventKind::import_open:
    case EventKind::import_close:
    case EventKind::context_create:
    case EventKind::context_destroy:
    case EventKind::device_reset:
    case EventKind::module_load:
    case EventKind::module_unload:
    case EventKind::device_info:
      return true;
    default:
      return false;
  }
}

void carry(const Event& event, uint32_t kernel) {
  if (event.witness_allocated != 0) {
    offer_peak(RingPeak::allocated, event, event.witness_allocated);
    offer_peak(RingPeak::reserved, event, event.witness_reserved);
  }
  switch (event.kind) {
    case EventKind::block_alloc:
    case EventKind::sampled_block:
      return block_allocated(event);
    case EventKind::block_free:
      return block_freed(event);
    case EventKind::block_free_completed:
      return remove(g_table.find(Carried::block, event.address));
    case EventKind::physical_alloc:
      return driver_allocated(event);
    case EventKind::physical_free_begin:
      return driver_free_begun(event);
    case EventKind::physical_free_end:
      return driver_free_ended(event);
    case EventKind::map:
      put(Carried::mapping, carried(event));
      return;
    case EventKind::unmap:
      return remove(g_table.find(Carried::mapping, event.address));
    case EventKind::label:
      put(Carried::label, carried(event));
      return;
    case EventKind::pool_reserved:
      put(Carried::pool, carried(event));
      return;
    case EventKind::phase_push:
      return push_phase(event);
    case EventKind::phase_pop:
      return pop_phase(event);
    case EventKind::step:
      g_step_plus_1 = event.extra + 1;
      put(Carried::step, carried(event));
      return;
    case EventKind::memory_sample:
      return sampled(event);
    case EventKind::process_sample:
      put(Carried::process_sample, carried(event));
      return;
    case EventKind::kernel:
    case EventKind::kernel_access:
      if ((event.flags & kEventGraphNode) == 0)
        kernel_launched(event, kernel != 0 ? kernel : event.text);
      return;
    default:
      return;
  }
}

void reset_carry() {
  g_table.clear();
  g_peaks = PeakTable{};
  g_phase_count = 0;
  g_step_plus_1 = 0;
}

}  // namespace vramtrack
