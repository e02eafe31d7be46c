#include "import/snapshot_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "import/json_reader.h"
#include "import/snapshot_reader.h"
#include "import/unpickler.h"
#include "import/value_store.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr uint32_t kEntryFlags =
    kEventExpandable | kEventSmallPool | kEventPendingFree | kEventPrivatePool;

bool is_block(EventKind kind) {
  return kind == EventKind::block_alloc || kind == EventKind::block_free ||
         kind == EventKind::block_free_completed;
}

}  // namespace

SnapshotRecording::SnapshotRecording(ByteSource& source, Encoding encoding,
                                     const std::filesystem::path& path) {
  info_.source = RecordingInfo::Source::snapshot;
  info_.path = path;
  {
    ValueStore store([&source] { return source.known_size(); });
    const Value root =
        encoding == Encoding::pickle ? read_pickle(source, store) : read_json(source, store);
    snapshot_ = read_snapshot(root, definitions_, info_);
  }
  info_.format = snapshot_.schema;
  settings_ = AllocatorSettings::of_recording(info_.allocator_settings, info_.metadata);
  reconstruct_all();
  find_start();
  explain();
}

void SnapshotRecording::reconstruct_all() {
  std::set<int16_t> devices;
  for (const SnapshotSegment& segment : snapshot_.segments) devices.insert(segment.device);
  for (const SnapshotTrace& trace : snapshot_.traces) devices.insert(trace.device);
  for (const int16_t device : devices) {
    const auto trace = std::find_if(snapshot_.traces.begin(), snapshot_.traces.end(),
                                    [&](const SnapshotTrace& t) { return t.device == device; });
    histories_.push_back(reconstruct(
        snapshot_, device, trace == snapshot_.traces.end() ? nullptr : &*trace, settings_));
    info_.devices.push_back({.ordinal = device});
  }
}

void SnapshotRecording::find_start() {
  const auto consider = [this](uint64_t time_us) {
    if (time_us != 0 && (start_us_ == 0 || time_us < start_us_)) start_us_ = time_us;
  };
  for (const SnapshotTrace& trace : snapshot_.traces)
    for (const SnapshotEntry& entry : trace.entries) consider(entry.time_us);
  for (const SnapshotAnnotation& annotation : snapshot_.annotations) consider(annotation.time_us);
  info_.start_realtime_ns = start_us_ * 1000;
}

void SnapshotRecording::explain() {
  if (histories_.empty()) {
    info_.notes.emplace_back(
        "the snapshot is empty: no segment and no event; it was taken before anything was "
        "allocated on the GPU, or in another process than the one that did");
    return;
  }
  const auto contradicting =
      std::count_if(snapshot_.segments.begin(), snapshot_.segments.end(),
                    [](const SnapshotSegment& segment) { return segment.contradicts_blocks; });
  if (contradicting != 0)
    info_.notes.push_back(fmt::format(
        "inconsistent: {} of {} segments claim an allocated size that is not the sum of their "
        "blocks; the blocks are believed",
        contradicting, snapshot_.segments.size()));
  if (snapshot_.traces.empty())
    info_.notes.emplace_back(
        "no history was recorded: only the moment of the snapshot is known "
        "(torch.cuda.memory._record_memory_history() before the job records it)");
  for (const DeviceHistory& history : histories_) explain_history(history);
}

void SnapshotRecording::explain_history(const DeviceHistory& history) {
  const auto trace =
      std::find_if(snapshot_.traces.begin(), snapshot_.traces.end(),
                   [&](const SnapshotTrace& t) { return t.device == history.device; });
  if (trace == snapshot_.traces.end()) return;
  const HistoryFacts& facts = history.facts;
  const bool has_blocks = std::any_of(trace->entries.begin(), trace->entries.end(),
                                      [](const SnapshotEntry& e) { return is_block(e.kind); });
  const auto note = [&](std::string text) {
    info_.notes.push_back(fmt::format("GPU {}: {}", history.device, text));
  };
  if (!history.blocks.empty()) {
    uint64_t requested = 0;
    for (const auto& [address, block] : history.blocks) requested += block.requested;
    const size_t count = trace->entries.size();
    const bool round = count >= 1000 && (count % 1000 == 0 || (count & (count - 1)) == 0);
    note(
        fmt::format("the trace lost its beginning: {} in {} blocks were there before its first "
                    "event ({}); they are reconstructed from the final state",
                    quantity(requested), history.blocks.size(),
                    !has_blocks ? "it holds no allocation"
                    : round     ? fmt::format("its ring buffer of {} entries was full", count)
                                : "recording began late, or its ring buffer was full"));
  }
  if (facts.outside_segments != 0 || facts.alloc_without_block != 0 ||
      facts.free_of_live_block != 0 || facts.segment_mismatches != 0)
    note(
        fmt::format("inconsistent: {} block events outside every segment, {} allocations that "
                    "are neither freed nor alive at the end, {} frees of blocks that are alive, "
                    "{} segment events that contradict the final segments",
                    facts.outside_segments, facts.alloc_without_block, facts.free_of_live_block,
                    facts.segment_mismatches));
  if (facts.sizes_different != 0)
    note(fmt::format("{} of {} block sizes differ from what the allocator's rules give",
                     facts.sizes_different, facts.sizes_checked));
  if (facts.sizes_rounded != 0)
    note(
        fmt::format("block sizes known only as the rounded request, a lower bound: {}; found from "
                    "the space they were cut from: {}",
                    facts.sizes_rounded, facts.sizes_derived + facts.sizes_checked));
  const bool timed = std::any_of(trace->entries.begin(), trace->entries.end(),
                                 [](const SnapshotEntry& e) { return e.time_us != 0; });
  if (!timed && has_blocks)
    note("events carry no times (PyTorch before 2.2): only their order is known");
}

uint64_t SnapshotRecording::pool_object(uint32_t pool) const {
  // (capture id, 0) for CUDA graphs, (0, number) for a user's MemPool.
  const auto& [capture, user] = snapshot_.pools[pool];
  return capture != 0 ? capture : user;
}

uint64_t SnapshotRecording::time_ns(uint64_t time_us) const {
  return time_us < start_us_ ? 0 : (time_us - start_us_) * 1000;
}

bool SnapshotRecording::visit_beginning(Event& event,
                                        const std::function<bool(const Event&)>& visit) const {
  uint64_t sequence = 0;
  const auto emit = [&] {
    event.sequence = sequence++;
    return visit(event);
  };
  for (const DeviceHistory& history : histories_) {
    for (const auto& [address, segment] : history.segments) {
      event = Event{.kind = EventKind::segment_alloc, .memory = Memory::device};
      event.device = history.device;
      event.stream = segment.stream;
      event.address = address;
      event.size = segment.size;
      event.stack = segment.stack;
      event.object = pool_object(segment.pool);
      event.flags = kEventReconstructed | (segment.small_pool ? kEventSmallPool : 0U) |
                    (segment.expandable ? kEventExpandable : 0U) |
                    (segment.pool != 0 ? kEventPrivatePool : 0U);
      if (!emit()) return false;
    }
    const uint32_t segment_flags = kEventSmallPool | kEventExpandable | kEventPrivatePool;
    for (const auto& [address, block] : history.blocks) {
      auto segment = history.segments.upper_bound(address);
      uint32_t flags = 0;
      uint64_t object = 0;
      if (segment != history.segments.begin()) {
        const HistorySegment& in = std::prev(segment)->second;
        if (address - in.address < in.size) {
          flags = (in.small_pool ? kEventSmallPool : 0U) | (in.expandable ? kEventExpandable : 0U) |
                  (in.pool != 0 ? kEventPrivatePool : 0U);
          object = pool_object(in.pool);
        }
      }
      event = Event{.kind = EventKind::block_alloc, .memory = Memory::device};
      event.device = history.device;
      event.stream = block.stream;
      event.address = address;
      event.size = block.size;
      event.requested = block.requested;
      event.stack = block.stack;
      event.object = object;
      event.flags = kEventReconstructed | kEventRequestedKnown | (flags & segment_flags);
      if (!emit()) return false;
      if (!block.pending) continue;
      event.kind = EventKind::block_free;
      event.flags |= kEventPendingFree;
      if (!emit()) return false;
    }
  }
  return true;
}

Event SnapshotRecording::event_of(const SnapshotEntry& entry, int16_t device) const {
  Event event;
  event.kind = entry.kind;
  event.memory = Memory::device;
  event.device = device;
  event.time_ns = time_ns(entry.time_us);
  event.stream = snapshot_.streams[entry.stream];
  event.size = entry.size;
  event.requested = entry.requested;
  event.object = pool_object(entry.pool);
  event.stack = entry.stack;
  event.text = entry.text;
  event.flags = entry.flags & kEntryFlags;
  if (entry.kind == EventKind::out_of_memory) {
    event.extra = entry.address;
  } else {
    event.address = entry.address;
  }
  if (is_block(entry.kind)) event.flags |= kEventRequestedKnown | kEventForeignText;
  return event;
}

void SnapshotRecording::for_each(const std::function<bool(const Event&)>& visit) const {
  Event event;
  if (!visit_beginning(event, visit)) return;
  uint64_t sequence = event.kind == EventKind::none ? 0 : event.sequence + 1;

  // Merges the devices and the annotations by time. Each source keeps its own order, and at equal
  // times the annotations come first, then the lower device.
  std::vector<size_t> next(snapshot_.traces.size(), 0);
  size_t annotation = 0;
  while (true) {
    const SnapshotTrace* source = nullptr;
    size_t chosen = 0;
    for (size_t i = 0; i < next.size(); ++i) {
      const SnapshotTrace& trace = snapshot_.traces[i];
      if (next[i] == trace.entries.size()) continue;
      if (source != nullptr &&
          trace.entries[next[i]].time_us >= source->entries[next[chosen]].time_us)
        continue;
      source = &trace;
      chosen = i;
    }
    const bool more = annotation < snapshot_.annotations.size();
    if (source == nullptr && !more) return;
    if (more && (source == nullptr || snapshot_.annotations[annotation].time_us <=
                                          source->entries[next[chosen]].time_us)) {
      const SnapshotAnnotation& a = snapshot_.annotations[annotation++];
      event = Event{.kind = a.begin ? EventKind::annotation_begin : EventKind::annotation_end};
      event.device = a.device;
      event.time_ns = time_ns(a.time_us);
      event.text = a.name;
    } else {
      event = event_of(source->entries[next[chosen]++], source->device);
    }
    event.sequence = sequence++;
    if (!visit(event)) return;
  }
}

}  // namespace vramtrack
