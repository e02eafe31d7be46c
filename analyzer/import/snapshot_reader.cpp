#include "import/snapshot_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr size_t kMaxFrames = kMaxStackDepth;
constexpr size_t kMaxDevices = 1024;
constexpr size_t kMaxPools = 65535;
// Beyond these, sums and ends of ranges could run over.
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;
constexpr uint64_t kMaxAddress = ~uint64_t{0} - 2 * kMaxBytes;

struct Action {
  std::string_view name;
  EventKind kind;
};
constexpr std::array kActions = {
    Action{"alloc", EventKind::block_alloc},
    Action{"free_requested", EventKind::block_free},
    Action{"free_completed", EventKind::block_free_completed},
    Action{"free", EventKind::block_free_completed},
    Action{"segment_alloc", EventKind::segment_alloc},
    Action{"segment_free", EventKind::segment_free},
    Action{"segment_map", EventKind::segment_map},
    Action{"segment_unmap", EventKind::segment_unmap},
    Action{"snapshot", EventKind::snapshot_taken},
    Action{"oom", EventKind::out_of_memory},
    Action{"annotate", EventKind::mark},
    Action{"user_defined", EventKind::mark},
};

constexpr std::string_view kSegmentKeys[] = {
    "device", "address",      "total_size",      "allocated_size", "active_size", "requested_size",
    "stream", "segment_type", "segment_pool_id", "is_expandable",  "frames",      "blocks"};
constexpr std::string_view kBlockKeys[] = {"address", "size",   "requested_size",
                                           "state",   "frames", "history"};
constexpr std::string_view kEntryKeys[] = {
    "action", "addr",    "device_free",     "size",          "stream",           "time_us",
    "frames", "pool_id", "compile_context", "user_metadata", "internal_metadata"};
constexpr std::string_view kTopKeys[] = {"segments", "device_traces", "allocator_settings",
                                         "external_annotations"};

bool is_python_file(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyx") || file.starts_with("<");
}

// The innermost frames of a C++ stack are those of the recorder itself.
bool is_recorder(const Frame& frame) {
  return frame.function.starts_with("torch::unwind::") ||
         frame.function.starts_with("torch::CapturedTraceback::") ||
         (frame.file.ends_with("memory_snapshot.cpp") &&
          frame.function.find("gather") != std::string::npos);
}

uint64_t bytes_of(const Value& value) {
  const uint64_t bytes = value.natural().value_or(0);
  if (bytes > kMaxBytes) throw InputError(fmt::format("names a size of {} bytes", bytes));
  return bytes;
}

uint64_t address_of(const Value& value, uint64_t otherwise = 0) {
  const uint64_t address = value.natural().value_or(otherwise);
  if (address > kMaxAddress) throw InputError(fmt::format("names the address {:#x}", address));
  return address;
}

class Reader {
 public:
  Reader(Definitions& definitions, RecordingInfo& info) : definitions_(definitions), info_(info) {}

  Snapshot read(const Value& root) {
    if (root.is_list()) {
      snapshot_.schema = "PyTorch snapshot, bare list of segments (1.x)";
      read_segments(root);
    } else if (root.is_dict() && root.find("segments").is_list()) {
      read_top(root);
    } else if (root.is_dict() && root.find("traceEvents").is_list()) {
      throw InputError(
          "is a Chrome trace, not a memory snapshot; "
          "torch.cuda.memory._dump_snapshot() writes those");
    } else {
      throw InputError(fmt::format("holds {}, not a memory snapshot: no 'segments' in it",
                                   root.is_dict() ? "a dictionary" : root.text(40)));
    }
    add_unknown_note();
    return std::move(snapshot_);
  }

 private:
  void read_top(const Value& root) {
    note_unknown(root, kTopKeys, "");
    read_settings(root.find("allocator_settings"));
    read_segments(root.find("segments"));
    int16_t device = 0;
    root.find("device_traces").each([&](Value trace) {
      if (static_cast<size_t>(device) == kMaxDevices)
        throw InputError("names more than 1024 devices");
      read_trace(trace, device++);
    });
    read_annotations(root.find("external_annotations"));
    const bool has_settings = root.find("allocator_settings").is_dict();
    snapshot_.schema = has_settings                           ? "PyTorch snapshot (2.3 or newer)"
                       : root.find("device_traces").is_list() ? "PyTorch snapshot (2.0 to 2.2)"
                                                              : "PyTorch snapshot, segments only";
  }

  void read_settings(const Value& settings) {
    settings.each_pair([&](Value key, Value value) {
      const std::string_view name = key.string();
      if (name.ends_with("ALLOC_CONF")) {
        info_.allocator_settings = value.string();
      } else if (value.is_dict()) {
        value.each_pair([&](Value inner, Value count) {
          info_.metadata.emplace_back(fmt::format("allocator.{}.{}", name, inner.text()),
                                      count.text());
        });
      } else {
        info_.metadata.emplace_back(fmt::format("allocator.{}", name), value.text());
      }
    });
  }

  void read_segments(const Value& segments) {
    snapshot_.segments.reserve(segments.count());
    segments.each([&](Value value) {
      if (!value.is_dict() || !value.find("total_size").natural())
        throw InputError("holds a list of something else than memory segments");
      read_segment(value);
    });
  }

  void read_segment(const Value& value) {
    note_unknown(value, kSegmentKeys, "segment ");
    SnapshotSegment& segment = snapshot_.segments.emplace_back();
    segment.device = device_of(value.find("device"));
    segment.address = address_of(value.find("address"));
    segment.size = bytes_of(value.find("total_size"));
    segment.stream = value.find("stream").natural().value_or(0);
    segment.small_pool = value.find("segment_type").string() == "small";
    segment.expandable = value.find("is_expandable").boolean().value_or(false);
    segment.pool = pool_of(value.find("segment_pool_id"));
    segment.stack = stack_of(value.find("frames"));
    const Value blocks = value.find("blocks");
    segment.blocks.reserve(blocks.count());
    uint64_t next_address = segment.address;  // old blocks have no address: they follow each other
    uint64_t allocated = 0;
    blocks.each([&](Value block) {
      const SnapshotBlock& read = segment.blocks.emplace_back(read_block(block, next_address));
      next_address = read.address + read.size;
      if (read.state == BlockState::allocated) allocated += read.size;
    });
    const auto claimed = value.find("allocated_size").natural();
    segment.contradicts_blocks = claimed && *claimed != allocated;
  }

  SnapshotBlock read_block(const Value& value, uint64_t next_address) {
    note_unknown(value, kBlockKeys, "block ");
    SnapshotBlock block;
    block.address = address_of(value.find("address"), next_address);
    block.size = bytes_of(value.find("size"));
    const std::string_view state = value.find("state").string();
    if (state == "active_allocated") {
      block.state = BlockState::allocated;
    } else if (state.starts_with("active")) {  // active_pending_free, active_awaiting_free
      block.state = BlockState::pending;
    }
    block.requested = bytes_of(value.find("requested_size"));
    block.stack = stack_of(value.find("frames"));
    // 1.13 and 2.0: the newest use of the block comes first.
    bool first = true;
    value.find("history").each([&](Value use) {
      if (!std::exchange(first, false)) return;
      block.stack = stack_of(use.find("frames"));
      if (block.requested == 0) block.requested = bytes_of(use.find("real_size"));
    });
    if (block.state == BlockState::free) {
      block.requested = 0;
    } else if (block.requested == 0) {
      block.requested = block.size;  // not known to this PyTorch
      ++blocks_without_request_;
    }
    return block;
  }

  void read_trace(const Value& trace, int16_t device) {
    const size_t count = trace.count();
    if (count == 0) return;
    SnapshotTrace& to = snapshot_.traces.emplace_back();
    to.device = device;
    to.entries.reserve(count);
    trace.each([&](Value value) {
      if (const auto entry = read_entry(value)) to.entries.push_back(*entry);
    });
  }

  std::optional<SnapshotEntry> read_entry(const Value& value) {
    note_unknown(value, kEntryKeys, "trace ");
    const std::string_view action = value.find("action").string();
    const auto* const known = std::find_if(kActions.begin(), kActions.end(),
                                           [&](const Action& a) { return a.name == action; });
    if (known == kActions.end()) {
      ++unknown_actions_[std::string(action.substr(0, 40))];
      return std::nullopt;
    }
    SnapshotEntry entry;
    entry.kind = known->kind;
    entry.time_us = value.find("time_us").natural().value_or(0);
    entry.address = address_of(value.find("addr"));
    entry.stream = stream_of(value.find("stream").natural().value_or(0));
    entry.pool = static_cast<uint16_t>(pool_of(value.find("pool_id")));
    entry.stack = stack_of(value.find("frames"));
    entry.text = text_of(value);
    const uint64_t size = bytes_of(value.find("size"));
    switch (entry.kind) {
      case EventKind::block_alloc:
      case EventKind::block_free:
      case EventKind::block_free_completed:
        entry.requested = size;
        break;
      case EventKind::out_of_memory:
        entry.address = bytes_of(value.find("device_free"));
        entry.size = size;
        break;
      default:
        entry.size = size;
    }
    return entry;
  }

  StringId text_of(const Value& value) {
    const Value metadata = value.find("user_metadata");
    const std::string_view context = value.find("compile_context").string();
    std::string text = metadata.is_string() || metadata.is_dict() ? metadata.text(1000) : "";
    if (!context.empty() && context != "N/A") {
      if (!text.empty()) text += " ";
      text += fmt::format("compile: {}", context);
    }
    return definitions_.intern(text);
  }

  void read_annotations(const Value& annotations) {
    snapshot_.annotations.reserve(annotations.count());
    annotations.each([&](Value value) {
      SnapshotAnnotation& annotation = snapshot_.annotations.emplace_back();
      annotation.begin = value.find("stage").string() != "END";
      annotation.name = definitions_.intern(value.find("name").string());
      annotation.device = device_of(value.find("device"));
      annotation.time_us = value.find("time_us").natural().value_or(0);
    });
  }

  static int16_t device_of(const Value& value) {
    const auto device = value.natural().value_or(0);
    if (device == ~uint64_t{0}) return -1;
    if (device >= kMaxDevices) throw InputError(fmt::format("names device {}", device));
    return static_cast<int16_t>(device);
  }

  uint32_t stream_of(uint64_t stream) {
    const auto [entry, added] =
        stream_ids_.try_emplace(stream, static_cast<uint32_t>(snapshot_.streams.size()));
    if (added) snapshot_.streams.push_back(stream);
    return entry->second;
  }

  uint32_t pool_of(const Value& value) {
    std::pair<uint64_t, uint64_t> id{0, 0};
    size_t i = 0;
    value.each([&](Value part) { (i++ == 0 ? id.first : id.second) = part.natural().value_or(0); });
    const auto [entry, added] =
        pool_ids_.try_emplace(id, static_cast<uint32_t>(snapshot_.pools.size()));
    if (added) {
      if (snapshot_.pools.size() > kMaxPools) throw InputError("names more than 65536 pools");
      snapshot_.pools.push_back(id);
    }
    return entry->second;
  }

  // Frame lists and frames are shared objects in most files: each is looked at once.
  StackId stack_of(const Value& frames) {
    if (!frames.is_list()) return 0;
    const auto [entry, added] = stacks_.try_emplace(frames.identity(), 0);
    if (!added) return entry->second;
    scratch_.clear();
    frames.each([&](Value frame) {
      if (scratch_.size() == kMaxFrames) return;
      const FrameId id = frame_of(frame);
      if (scratch_.empty() && is_recorder(definitions_.frame(id))) return;
      scratch_.push_back(id);
    });
    return entry->second = definitions_.intern_stack(scratch_);
  }

  FrameId frame_of(const Value& value) {
    const auto [entry, added] = frames_.try_emplace(value.identity(), 0);
    if (!added) return entry->second;
    Frame frame;
    frame.function = value.find("name").string();
    frame.file = value.find("filename").string();
    frame.line = static_cast<uint32_t>(
        std::min<uint64_t>(value.find("line").natural().value_or(0), 0x7fffffff));
    frame.python = is_python_file(frame.file);
    return entry->second = definitions_.intern_frame(frame);
  }

  template <size_t N>
  void note_unknown(const Value& dict, const std::string_view (&known)[N], std::string_view where) {
    dict.each_pair([&](Value key, Value /*value*/) {
      const std::string_view name = key.string();
      if (std::find(std::begin(known), std::end(known), name) != std::end(known)) return;
      if (unknown_keys_.size() < 20)
        unknown_keys_.insert(fmt::format("{}{}", where, name.substr(0, 40)));
    });
  }

  void add_unknown_note() {
    if (!unknown_keys_.empty())
      info_.notes.push_back(fmt::format("keys that this version does not know were ignored: {}",
                                        fmt::join(unknown_keys_, ", ")));
    for (const auto& [action, count] : unknown_actions_)
      info_.notes.push_back(
          fmt::format("{} trace entries with the unknown action '{}' were ignored", count, action));
    if (blocks_without_request_ != 0)
      info_.notes.push_back(
          fmt::format("{} blocks come without the size that was asked for; their block size stands "
                      "in for it",
                      blocks_without_request_));
  }

  Definitions& definitions_;
  RecordingInfo& info_;
  Snapshot snapshot_;
  std::unordered_map<uint64_t, uint32_t> stream_ids_{{0, 0}};
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> pool_ids_{{{0, 0}, 0}};
  std::unordered_map<uint32_t, StackId> stacks_;
  std::unordered_map<uint32_t, FrameId> frames_;
  std::vector<FrameId> scratch_;
  std::set<std::string> unknown_keys_;
  std::map<std::string, uint64_t> unknown_actions_;
  uint64_t blocks_without_request_ = 0;
};

}  // namespace

Snapshot read_snapshot(const Value& root, Definitions& definitions, RecordingInfo& info) {
  return Reader(definitions, info).read(root);
}

}  // namespace vramtrack
