// Thirteen snapshots that strangers published, and an independent reader's figures for them: both
// the final state as the file says it and what a replay of the recording's events arrives at.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "import/open.h"
#include "import/snapshot_recording.h"

namespace vramtrack {
namespace {

const std::filesystem::path kSnapshots = std::filesystem::path(VRAMTRACK_TEST_DATA) / "snapshots";

nlohmann::json expected_figures() {
  std::ifstream in(kSnapshots / "expected.json");
  return nlohmann::json::parse(in);
}

std::unique_ptr<Recording> open_case(const std::string& name) {
  return open_recording(kSnapshots / (name + ".pickle.zst"));
}

// A replay that knows nothing but events.
struct Device {
  struct Block {
    uint64_t size, requested;
    bool pending;
  };
  std::map<uint64_t, uint64_t> segments;
  std::map<uint64_t, Block> blocks;
  uint64_t requested = 0, start = 0, peak = 0, lowest = 0;
  bool recorded = false;  // an event that is not reconstructed has come
  std::map<std::string, uint64_t> actions;

  void apply(const Event& event);
  void count(const Event& event);
  void unmap(uint64_t address, uint64_t size);
  void add(const Event& event);
  void remove(uint64_t address, bool completed);

  [[nodiscard]] uint64_t reserved() const {
    uint64_t sum = 0;
    for (const auto& [address, size] : segments) sum += size;
    return sum;
  }
  [[nodiscard]] uint64_t bytes(uint64_t Block::*field, bool with_pending) const {
    uint64_t sum = 0;
    for (const auto& [address, block] : blocks)
      if (with_pending || !block.pending) sum += block.*field;
    return sum;
  }
};

void Device::add(const Event& event) {
  blocks[event.address] = {event.size, event.requested, false};
  requested += event.requested;
}

void Device::remove(uint64_t address, bool completed) {
  const auto block = blocks.find(address);
  if (block == blocks.end()) return;
  if (!block->second.pending) requested -= block->second.requested;
  if (completed) {
    blocks.erase(block);
  } else {
    block->second.pending = true;
  }
}

void Device::unmap(uint64_t address, uint64_t size) {
  const auto it = std::prev(segments.upper_bound(address));
  const auto [begin, whole] = *it;
  REQUIRE(address + size <= begin + whole);
  segments.erase(it);
  if (address > begin) segments[begin] = address - begin;
  if (address + size < begin + whole) segments[address + size] = begin + whole - address - size;
}

void Device::count(const Event& event) {
  static const std::map<EventKind, std::string> names = {
      {EventKind::block_alloc, "alloc"},
      {EventKind::block_free, "free_requested"},
      {EventKind::block_free_completed, "free_completed"},
      {EventKind::segment_alloc, "segment_alloc"},
      {EventKind::segment_free, "segment_free"},
      {EventKind::segment_map, "segment_map"},
      {EventKind::segment_unmap, "segment_unmap"},
      {EventKind::snapshot_taken, "snapshot"},
      {EventKind::out_of_memory, "oom"}};
  if (const auto name = names.find(event.kind); name != names.end()) ++actions[name->second];
}

void Device::apply(const Event& event) {
  const bool reconstructed = (event.flags & kEventReconstructed) != 0;
  if (!reconstructed && !std::exchange(recorded, true)) start = peak = lowest = requested;
  if (!reconstructed) count(event);
  switch (event.kind) {
    case EventKind::segment_alloc:
      segments[event.address] = event.size;
      break;
    case EventKind::segment_map: {
      uint64_t begin = event.address;
      uint64_t size = event.size;
      // Neighbours of the same segment grow together; two segments never touch.
      if (const auto next = segments.find(begin + size); next != segments.end()) {
        size += next->second;
        segments.erase(next);
      }
      if (const auto after = segments.lower_bound(begin); after != segments.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == begin) {
          begin = before->first;
          size += before->second;
        }
      }
      segments[begin] = size;
      break;
    }
    case EventKind::segment_free:
      segments.erase(event.address);
      break;
    case EventKind::segment_unmap:
      unmap(event.address, event.size);
      break;
    case EventKind::block_alloc:
      add(event);
      break;
    case EventKind::block_free:
      remove(event.address, false);
      break;
    case EventKind::block_free_completed:
      remove(event.address, true);
      break;
    default:
      break;
  }
  if (!reconstructed) {
    peak = std::max(peak, requested);
    lowest = std::min(lowest, requested);
  }
}

bool is_annotation(const Event& event) {
  return event.kind == EventKind::annotation_begin || event.kind == EventKind::annotation_end;
}

std::map<int, Device> replay(const Recording& recording) {
  std::map<int, Device> devices;
  uint64_t sequence = 0;
  recording.for_each([&](const Event& event) {
    REQUIRE(event.sequence == sequence++);
    if (!is_annotation(event)) devices[event.device].apply(event);
    return true;
  });
  return devices;
}

const std::vector<std::string> kNames = [] {
  std::vector<std::string> names;
  const nlohmann::json figures = expected_figures();
  for (const auto& item : figures.items()) names.push_back(item.key());
  return names;
}();

}  // namespace

TEST_CASE("all published snapshots are here") {
  REQUIRE(kNames.size() == 13);
}

TEST_CASE("the final state has the figures of an independent reader") {
  const auto expected = expected_figures();
  for (const std::string& name : kNames) {
    INFO(name);
    const auto recording = open_case(name);
    const auto& snapshot = dynamic_cast<const SnapshotRecording&>(*recording).snapshot();
    uint64_t contradicting = 0;
    std::map<int, std::map<std::string, uint64_t>> devices;
    for (const SnapshotSegment& segment : snapshot.segments) {
      auto& figures = devices[segment.device];
      figures["reserved"] += segment.size;
      figures["segments"] += 1;
      figures["expandable_segments"] += segment.expandable ? 1 : 0;
      contradicting += segment.contradicts_blocks ? 1 : 0;
      for (const char* key : {"allocated", "active", "requested", "free_blocks", "largest_free"})
        figures[key] += 0;
      for (const SnapshotBlock& block : segment.blocks) {
        if (block.state == BlockState::free) {
          figures["free_blocks"] += 1;
          figures["largest_free"] = std::max(figures["largest_free"], block.size);
          continue;
        }
        if (block.state == BlockState::allocated) figures["allocated"] += block.size;
        figures["active"] += block.size;
        figures["requested"] += block.requested;
      }
    }
    const auto& wanted = expected[name];
    REQUIRE(contradicting == wanted["inconsistent_segments"].get<uint64_t>());
    REQUIRE(devices.size() == wanted["devices"].size());
    for (const auto& [device, figures] : wanted["devices"].items())
      for (const auto& [key, value] : figures.items()) {
        INFO(device << " " << key);
        REQUIRE(devices[std::stoi(device)][key] == value.get<uint64_t>());
      }
    const auto& conf = wanted["alloc_conf"];
    REQUIRE(recording->info().allocator_settings ==
            (conf.is_null() ? "" : conf.get<std::string>()));
  }
}

TEST_CASE("a replay of the events has the figures of an independent reader") {
  const auto expected = expected_figures();
  for (const std::string& name : kNames) {
    INFO(name);
    const auto recording = open_case(name);
    auto devices = replay(*recording);
    const nlohmann::json traces = expected[name]["traces"];
    for (const auto& [device, figures] : traces.items()) {
      INFO(device);
      const Device& replayed = devices.at(std::stoi(device));
      REQUIRE(replayed.start == figures["start_requested"].get<uint64_t>());
      REQUIRE(replayed.peak == figures["peak_requested"].get<uint64_t>());
      REQUIRE(replayed.lowest == figures["lowest_requested"].get<uint64_t>());
      uint64_t events = 0;
      for (const auto& [action, count] : replayed.actions) {
        INFO(action);
        REQUIRE(figures["actions"].contains(action));
        REQUIRE(count == figures["actions"][action].get<uint64_t>());
        events += count;
      }
      REQUIRE(events == figures["events"].get<uint64_t>());
    }
    const nlohmann::json finals = expected[name]["devices"];
    for (const auto& [device, figures] : finals.items()) {
      INFO(device);
      const Device& end = devices.at(std::stoi(device));
      REQUIRE(end.reserved() == figures["reserved"].get<uint64_t>());
      REQUIRE(end.segments.size() == figures["segments"].get<uint64_t>());
      REQUIRE(end.bytes(&Device::Block::size, false) == figures["allocated"].get<uint64_t>());
      REQUIRE(end.bytes(&Device::Block::size, true) == figures["active"].get<uint64_t>());
      REQUIRE(end.bytes(&Device::Block::requested, true) == figures["requested"].get<uint64_t>());
    }
  }
}

TEST_CASE("the out-of-memory event keeps its size, free memory and lines") {
  const auto expected = expected_figures();
  for (const std::string& name : kNames) {
    INFO(name);
    const auto recording = open_case(name);
    std::vector<Event> events;
    recording->for_each([&](const Event& event) {
      if (event.kind == EventKind::out_of_memory) events.push_back(event);
      return true;
    });
    const auto& wanted = expected[name]["oom"];
    REQUIRE(events.size() == wanted.size());
    for (size_t i = 0; i < events.size(); ++i) {
      REQUIRE(events[i].device == wanted[i]["device"].get<int>());
      REQUIRE(events[i].size == wanted[i]["size"].get<uint64_t>());
      REQUIRE(events[i].extra == wanted[i]["device_free"].get<uint64_t>());
      std::vector<std::string> lines;
      for (const FrameId id : recording->definitions().stack(events[i].stack)) {
        const Frame& frame = recording->definitions().frame(id);
        if (!frame.python) continue;
        lines.push_back(std::filesystem::path(frame.file).filename().string() + ":" +
                        std::to_string(frame.line) + ":" + frame.function);
      }
      const auto innermost = wanted[i]["py"].get<std::vector<std::string>>();
      REQUIRE(lines.size() >= innermost.size());
      lines.resize(innermost.size());
      REQUIRE(lines == innermost);
    }
  }
}

TEST_CASE("times never go back, and devices are merged") {
  const auto recording = open_case("oom-3gpu-expandable");
  uint64_t last = 0;
  std::vector<int> order;
  recording->for_each([&](const Event& event) {
    REQUIRE(event.time_ns >= last);
    last = event.time_ns;
    if (order.empty() || order.back() != event.device) order.push_back(event.device);
    return true;
  });
  // Three devices that work at the same time take turns many times.
  REQUIRE(order.size() > 6);
}

TEST_CASE("the inconsistent and the empty snapshot are explained") {
  const auto says = [](const std::string& name, const std::string& what) {
    const auto recording = open_case(name);
    const auto& notes = recording->info().notes;
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(what) != std::string::npos;
    });
  };
  REQUIRE(says("inconsistent-trace", "5 of 5 segments claim an allocated size"));
  REQUIRE(says("inconsistent-trace", "520 block events outside every segment"));
  REQUIRE(says("empty", "the snapshot is empty"));
  REQUIRE(says("many-free-blocks", "no history was recorded"));
  REQUIRE(says("train-ctx128", "the trace lost its beginning: 4.75 GiB"));
  REQUIRE_FALSE(says("oom-3gpu-expandable", "lost its beginning"));
}

TEST_CASE("block sizes that are known agree with the allocator's rules") {
  uint64_t checked = 0;
  for (const std::string& name : kNames) {
    if (name == "inconsistent-trace") continue;
    INFO(name);
    const auto recording = open_case(name);
    for (const DeviceHistory& history :
         dynamic_cast<const SnapshotRecording&>(*recording).histories()) {
      REQUIRE(history.facts.sizes_different == 0);
      checked += history.facts.sizes_checked;
    }
  }
  REQUIRE(checked > 1000);
}

}  // namespace vramtrack
