#include "trace/trace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "trace/chunk_cursor.h"
#include "trace/chunk_index.h"
#include "trace/definition_reader.h"
#include "trace/file_header.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

Damage damage_policy = Damage::refuse;

// Sampled blocks are blocks like others, but for what they stand for.
Event as_analyzed(Event event) {
  if (event.kind == EventKind::sampled_block) {
    event.kind = EventKind::block_alloc;
    event.flags |= kEventSampled;
  }
  return event;
}

// What a ring carried over, as the events that made it. What surrounded them, the step, the phase
// and the kernel that followed, is told by events of its own.
class History {
 public:
  explicit History(const std::function<bool(const Event&)>& visit) : visit_(visit) {}

  bool run(const std::vector<CarriedEvent>& history, const RingBeginning& beginning) {
    for (const CarriedEvent& carried : history) {
      if (!tell(carried)) return false;
    }
    return visit_(Event{.kind = EventKind::ring_restart,
                        .sequence = beginning.sequence - 1,
                        .time_ns = beginning.time_ns,
                        .extra = beginning.sequence - 1});
  }

 private:
  bool tell(const CarriedEvent& carried) {
    Event event = as_analyzed(carried.event);
    event.flags |= kEventCarried;
    const auto besides = [&](EventKind kind) {
      return Event{.kind = kind,
                   .thread = event.thread,
                   .sequence = event.sequence,
                   .time_ns = event.time_ns,
                   .flags = kEventCarried};
    };
    if (carried.step_plus_1 != step_plus_1_ && carried.step_plus_1 != 0 &&
        event.kind != EventKind::ring_peak) {
      Event step = besides(EventKind::step);
      step.extra = carried.step_plus_1 - 1;
      step_plus_1_ = carried.step_plus_1;
      if (!visit_(step)) return false;
    }
    const bool in_phase = carried.phase != 0 && event.kind != EventKind::phase_push;
    if (in_phase) {
      Event push = besides(EventKind::phase_push);
      push.text = carried.phase;
      if (!visit_(push)) return false;
    }
    if (!visit_(event)) return false;
    if (in_phase && !visit_(besides(EventKind::phase_pop))) return false;
    if (carried.kernel == 0) return true;
    Event kernel = besides(EventKind::kernel);
    kernel.text = carried.kernel;
    kernel.address = event.address;
    return visit_(kernel);
  }

  const std::function<bool(const Event&)>& visit_;
  uint64_t step_plus_1_ = 0;
};

// A chunk that is being read, and the bytes it is read from.
struct OpenChunk {
  std::vector<uint8_t> buffer;
  std::optional<ChunkCursor> cursor;

  bool open(const ChunkIndex& index, const ChunkRef& ref) {
    const std::span<const uint8_t> bytes = index.load(ref, buffer);
    const auto header = chunk_header(bytes);
    if (!header) return false;  // cut off by others since it was indexed
    cursor.emplace(*header, bytes);
    return next(index.beginning ? index.beginning->sequence : 0);
  }
  // The next event that a ring has not given up.
  bool next(uint64_t beginning) {
    while (cursor->next_event()) {
      if (sequence() >= beginning) return true;
    }
    return false;
  }
  [[nodiscard]] uint64_t sequence() const { return cursor->event().sequence; }
};

// Puts the events of all threads in order. Each thread has one chunk in hand at a time, so a chunk
// is opened when its first sequence number comes up and forgotten at its end: never more are open
// than the window has slots.
class Merge {
 public:
  explicit Merge(const ChunkIndex& index) : index_(index) {}

  void run(const std::function<bool(const Event&)>& visit) {
    open_due();
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), later);
      std::unique_ptr<OpenChunk> chunk = std::move(open_.back());
      open_.pop_back();
      if (!drain(*chunk, visit)) return;
      if (chunk->cursor) {
        open_.push_back(std::move(chunk));
        std::push_heap(open_.begin(), open_.end(), later);
      } else {
        spare_.push_back(std::move(chunk));
      }
      open_due();
    }
  }

 private:
  static bool later(const std::unique_ptr<OpenChunk>& a, const std::unique_ptr<OpenChunk>& b) {
    return a->sequence() > b->sequence();
  }

  // Visits the events of a chunk until another one is due.
  bool drain(OpenChunk& chunk, const std::function<bool(const Event&)>& visit) {
    uint64_t until = open_.empty() ? UINT64_MAX : open_.front()->sequence();
    if (next_ < index_.chunks.size()) until = std::min(until, index_.chunks[next_].first_sequence);
    do {
      if (!visit(as_analyzed(chunk.cursor->event()))) return false;
      if (!chunk.next(0)) {
        chunk.cursor.reset();
        return true;
      }
    } while (chunk.sequence() <= until);
    return true;
  }

  // Opens every chunk that begins before the next event of those open.
  void open_due() {
    while (next_ < index_.chunks.size() &&
           (open_.empty() || index_.chunks[next_].first_sequence <= open_.front()->sequence())) {
      std::unique_ptr<OpenChunk> chunk;
      if (spare_.empty()) {
        chunk = std::make_unique<OpenChunk>();
      } else {
        chunk = std::move(spare_.back());
        spare_.pop_back();
      }
      if (chunk->open(index_, index_.chunks[next_++])) {
        open_.push_back(std::move(chunk));
        std::push_heap(open_.begin(), open_.end(), later);
        if (open_.size() > index_.header.slot_count + 1) {
          throw InputError(fmt::format("{} is damaged: {} chunks overlap, the writer had {}",
                                       index_.file.path(), open_.size(), index_.header.slot_count));
        }
      } else {
        spare_.push_back(std::move(chunk));
      }
    }
  }

  const ChunkIndex& index_;
  size_t next_ = 0;  // first chunk that was not opened yet
  std::vector<std::unique_ptr<OpenChunk>> open_;
  std::vector<std::unique_ptr<OpenChunk>> spare_;
};

// What the index pass learns from the events themselves.
void note_device(RecordingInfo& info, const Event& event) {
  const auto known =
      std::find_if(info.devices.begin(), info.devices.end(),
                   [&](const DeviceInfo& device) { return device.ordinal == event.device; });
  if (known != info.devices.end()) {
    known->total_bytes = event.size;
  } else if (info.devices.size() < 1024) {
    info.devices.push_back({.ordinal = event.device, .total_bytes = event.size});
  }
}

// Reads all records of a chunk once: definitions are kept, events are only checked.
class Inspector {
 public:
  Inspector(DefinitionReader& definitions, RecordingInfo& info)
      : definitions_(definitions), info_(info) {}

  bool operator()(std::span<const uint8_t> bytes) {
    const auto header = chunk_header(bytes);
    if (!header) return false;
    ChunkCursor cursor(*header, bytes);
    while (true) {
      switch (cursor.next()) {
        case ChunkCursor::Record::event:
          ++info_.event_count;
          if (cursor.event().kind == EventKind::device_info) {
            note_device(info_, cursor.event());
            device_names.emplace_back(cursor.event().device, cursor.event().text);
          }
          break;
        case ChunkCursor::Record::definition:
          if (!definitions_.read(cursor.definition_kind(), cursor.definition())) return false;
          break;
        case ChunkCursor::Record::end:
          return true;
        case ChunkCursor::Record::damaged:
          return false;
      }
    }
  }

  std::vector<std::pair<int16_t, StringId>> device_names;

 private:
  DefinitionReader& definitions_;
  RecordingInfo& info_;
};

// Whether the process that writes the file runs on this machine; false where nobody can tell.
bool writer_has_it_open(const RecordingInfo& info) {
  char host[256] = {};
  if (info.pid == 0 || gethostname(host, sizeof(host) - 1) != 0 || info.host != host) return false;
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.path, error);
  std::filesystem::directory_iterator open_files(fmt::format("/proc/{}/fd", info.pid), error);
  for (; !error && open_files != std::filesystem::directory_iterator();
       open_files.increment(error)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(open_files->path(), gone) == file) return true;
  }
  return false;
}

// One frame of a raw stack becomes one frame, or several where functions were inlined.
void name_stacks(const RawDefinitions& raw, const FrameResolverFactory& factory,
                 Definitions& definitions, std::vector<std::string>& notes) {
  const std::unique_ptr<FrameResolver> resolver = factory ? factory(raw, notes) : nullptr;
  std::vector<FrameId> frames;
  for (const RawStack& stack : raw.stacks) {
    frames.clear();
    for (const RawFrame& raw_frame : stack.frames) {
      if (resolver == nullptr) {
        frames.push_back(0);
        continue;
      }
      for (const Frame& frame : resolver->resolve(stack.id, raw_frame)) {
        frames.push_back(definitions.intern_frame(frame));
      }
    }
    definitions.define_stack(stack.id, frames);
  }
}

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path, const FrameResolverFactory& resolver,
                     Damage damage)
    : index_(std::make_unique<ChunkIndex>(path)) {
  info_ = read_info(index_->file, index_->header);
  DefinitionReader definitions(definitions_);
  Inspector inspector(definitions, info_);
  index_->build([&inspector](std::span<const uint8_t> bytes) { return inspector(bytes); });
  info_.integrity = index_->integrity;
  read_end();
  judge_damage(damage);

  gather_history(definitions.kept());
  for (const CarriedEvent& kept : definitions.kept()) {
    if (kept.event.kind == EventKind::device_info)
      inspector.device_names.emplace_back(kept.event.device, kept.event.text);
  }
  raw_ = definitions.finish(info_);
  if (!index_->symbols.empty()) raw_.symbols = index_->symbols.back();
  for (const auto& [ordinal, name] : inspector.device_names) {
    for (DeviceInfo& device : info_.devices) {
      if (device.ordinal == ordinal) device.name = definitions_.string(name);
    }
  }
  std::sort(info_.devices.begin(), info_.devices.end(),
            [](const DeviceInfo& a, const DeviceInfo& b) { return a.ordinal < b.ordinal; });
  name_stacks(raw_, resolver, definitions_, info_.notes);
}

TraceFile::~TraceFile() = default;

// The writer's last words.
void TraceFile::read_end() {
  const auto totals =
      nlohmann::json::parse(index_->end_totals, nullptr, /*allow_exceptions=*/false);
  if (!totals.is_object()) return;
  const auto time = totals.find("time_ns");
  if (time != totals.end() && time->is_number_unsigned()) info_.end_ns = time->get<uint64_t>();
}

// A kill leaves a cut tail, and torn frames whose chunks are kept elsewhere. Anything worse is
// damage that came later, and numbers from such a file would be wrong without looking wrong.
void TraceFile::judge_damage(Damage damage) {
  const Integrity& found = info_.integrity;
  const bool cut = info_.finished && index_->end_totals.empty();
  if (damage == Damage::refuse && (found.corrupt_chunks != 0 || found.corrupt_bytes != 0 || cut)) {
    throw InputError(fmt::format(
        "{} is damaged: {} of {} chunks cannot be read, {} bytes are wrong, {} are missing their "
        "end; `vramtrack --salvage ...` reads what is left",
        info_.path, found.corrupt_chunks, found.chunks, found.corrupt_bytes,
        found.truncated_bytes));
  }
  if (found.corrupt_chunks != 0 || found.corrupt_bytes != 0) {
    info_.notes.push_back(fmt::format("damaged: {} chunks and {} bytes could not be read",
                                      found.corrupt_chunks, found.corrupt_bytes));
  }
  if (!info_.finished) {
    info_.running = writer_has_it_open(info_);
    info_.notes.push_back(
        info_.running
            ? fmt::format("still being written by process {}: this is what it has recorded so far",
                          info_.pid)
            : "the writer did not close the file: it was killed or still runs");
  }
}

// What is known of the time before a ring's beginning: its snapshot, and the events that are kept
// for good. Of those, later ones are in the chunks as well.
void TraceFile::gather_history(const std::vector<CarriedEvent>& kept) {
  for (const CarriedEvent& carried : kept) {
    if (carried.event.kind == EventKind::device_info) note_device(info_, carried.event);
  }
  if (!index_->beginning) return;
  info_.ring = index_->beginning;
  history_ = std::move(index_->carried);
  for (const CarriedEvent& carried : kept) {
    if (carried.event.sequence < info_.ring->sequence) history_.push_back(carried);
  }
  std::stable_sort(history_.begin(), history_.end(),
                   [](const CarriedEvent& a, const CarriedEvent& b) {
                     return a.event.sequence < b.event.sequence;
                   });
  info_.notes.push_back(fmt::format(
      "ring: begins at {:.3f} s; the {} earlier events are gone, what they left live is known{}",
      static_cast<double>(info_.ring->time_ns) / 1e9, info_.ring->sequence - 1,
      info_.ring->complete ? "" : " in part"));
}

// An access names its kernel through its list.
void TraceFile::for_each(const std::function<bool(const Event&)>& visit) const {
  if (info_.ring && !History(visit).run(history_, *info_.ring)) return;
  Merge(*index_).run([&](const Event& event) {
    if (event.kind != EventKind::kernel_access || event.extra == 0) return visit(event);
    Event named = event;
    if (const KernelAccess* access = definitions_.access(event.extra)) named.text = access->kernel;
    return visit(named);
  });
}

std::unique_ptr<TraceFile> open_trace(const std::filesystem::path& path,
                                      const FrameResolverFactory& resolver) {
  return std::make_unique<TraceFile>(path, resolver, damage_policy);
}

void set_damage_policy(Damage damage) {
  damage_policy = damage;
}

bool is_trace(std::span<const uint8_t> first_bytes) {
  return first_bytes.size() >= sizeof(kFileMagic) &&
         std::memcmp(first_bytes.data(), kFileMagic, sizeof(kFileMagic)) == 0;
}

}  // namespace vramtrack
