#include "trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "trace/chunk_cursor.h"
#include "trace/chunk_index.h"
#include "trace/definition_reader.h"
#include "trace/file_header.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

Damage damage_policy = Damage::refuse;

// A chunk that is being read, and the bytes it is read from.
struct OpenChunk {
  std::vector<uint8_t> buffer;
  std::optional<ChunkCursor> cursor;

  bool open(const ChunkIndex& index, const ChunkRef& ref) {
    const std::span<const uint8_t> bytes = index.load(ref, buffer);
    const auto header = chunk_header(bytes);
    if (!header) return false;  // cut off by others since it was indexed
    cursor.emplace(*header, bytes);
    return cursor->next_event();
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
      if (!visit(chunk.cursor->event())) return false;
      if (!chunk.cursor->next_event()) {
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
  judge_damage(damage);

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

// A kill leaves a cut tail and nothing worse. Anything worse is damage that came later, and numbers
// from such a file would be wrong without looking wrong.
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
    info_.notes.emplace_back("the writer did not close the file: it was killed or still runs");
  }
}

// An access names its kernel through its list.
void TraceFile::for_each(const std::function<bool(const Event&)>& visit) const {
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
