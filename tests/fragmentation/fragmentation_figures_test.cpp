// Fragmentation of the published snapshots against an independent reader's figures, and of segments
// laid out by hand.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "diagnosis/fragmentation/fragmentation_report.h"
#include "diagnosis/fragmentation/segment_map.h"
#include "import/open.h"

namespace vramtrack {
namespace {

const std::filesystem::path kSnapshots = std::filesystem::path(VRAMTRACK_TEST_DATA) / "snapshots";

// A recording made of what a test says.
class Laid : public Recording {
 public:
  void for_each(const std::function<bool(const Event&)>& visit) const override {
    for (const Event& event : events_)
      if (!visit(event)) return;
  }
  Laid& segment(uint64_t address, uint64_t size, uint32_t flags = 0) {
    return add(EventKind::segment_alloc, address, size, flags);
  }
  Laid& map(uint64_t address, uint64_t size) {
    return add(EventKind::segment_map, address, size, kEventExpandable);
  }
  Laid& block(uint64_t address, uint64_t size, uint64_t requested, uint32_t flags = 0) {
    add(EventKind::block_alloc, address, size, flags | kEventRequestedKnown);
    events_.back().requested = requested;
    return *this;
  }
  Laid& free(uint64_t address, uint64_t size, bool completed) {
    add(EventKind::block_free, address, size, completed ? 0U : uint32_t{kEventPendingFree});
    return completed ? add(EventKind::block_free_completed, address, size, 0) : *this;
  }

 private:
  Laid& add(EventKind kind, uint64_t address, uint64_t size, uint32_t flags) {
    Event event;
    event.kind = kind;
    event.memory = Memory::device;
    event.device = 0;
    event.address = address;
    event.size = size;
    event.flags = flags;
    event.sequence = events_.size();
    event.time_ns = events_.size();
    events_.push_back(event);
    return *this;
  }
  std::vector<Event> events_;
};

Fragmentation at_end(const Recording& recording, int16_t device = 0) {
  return analyze_fragmentation(recording, survey(recording), device, "end");
}

uint64_t bytes(const Fragmentation& result, HoleReason reason) {
  return result.total.by_reason[static_cast<size_t>(reason)];
}

constexpr uint64_t kBase = 64 * kGiB;

}  // namespace

TEST_CASE("the published snapshots have the holes that an independent reader counts") {
  std::ifstream in(kSnapshots / "expected.json");
  const auto expected = nlohmann::json::parse(in);
  size_t devices = 0;
  for (const auto& item : expected.items()) {
    const std::string& name = item.key();
    if (name == "inconsistent-trace") continue;  // its blocks do not fill its segments
    INFO(name);
    const auto recording = open_recording(kSnapshots / (name + ".pickle.zst"));
    const nlohmann::json finals = item.value()["devices"];
    for (const auto& [device, figures] : finals.items()) {
      INFO(device);
      const Fragmentation result = at_end(*recording, static_cast<int16_t>(std::stoi(device)));
      REQUIRE(result.total.reserved == figures["reserved"].get<uint64_t>());
      REQUIRE(result.total.allocated == figures["allocated"].get<uint64_t>());
      REQUIRE(result.total.requested == figures["requested"].get<uint64_t>());
      REQUIRE(result.total.segments == figures["segments"].get<uint64_t>());
      REQUIRE(result.total.holes == figures["free_blocks"].get<uint64_t>());
      REQUIRE(result.total.largest_free == figures["largest_free"].get<uint64_t>());
      uint64_t by_reason = 0;
      for (const uint64_t part : result.total.by_reason) by_reason += part;
      REQUIRE(by_reason == result.total.free);
      REQUIRE(result.total.free == result.total.reserved - result.total.allocated);
      ++devices;
    }
  }
  REQUIRE(devices == 13);  // 11 snapshots with one device or three; the empty one has none
}

TEST_CASE("each hole has its reason, and the measures are as defined") {
  Laid recording;
  // Asked for lately: 40 and 20 MiB in the large pool.
  recording.segment(kBase, 100 * kMiB)
      .block(kBase, 40 * kMiB, 39 * kMiB)
      .block(kBase + 50 * kMiB, 20 * kMiB, 20 * kMiB);  // holes of 10 and of 30 MiB
  recording
      .segment(kBase + kGiB, 100 * kMiB)  // nobody is in it
      .segment(kBase + 2 * kGiB, 100 * kMiB)
      .block(kBase + 2 * kGiB, 20 * kMiB, 20 * kMiB)  // a fifth holds the rest
      .segment(kBase + 3 * kGiB, 30 * kMiB)
      .block(kBase + 3 * kGiB, 30 * kMiB, 30 * kMiB)
      .free(kBase + 3 * kGiB, 30 * kMiB, false);
  const Fragmentation result = at_end(recording);
  REQUIRE(result.smallest_request == 20 * kMiB);
  REQUIRE(result.total.reserved == 330 * kMiB);
  REQUIRE(result.total.allocated == 80 * kMiB);
  REQUIRE(result.total.rounding() == kMiB);
  REQUIRE(bytes(result, HoleReason::too_small) == 10 * kMiB);
  REQUIRE(bytes(result, HoleReason::reusable) == 30 * kMiB);
  REQUIRE(bytes(result, HoleReason::releasable) == 100 * kMiB);
  REQUIRE(bytes(result, HoleReason::pinned) == 80 * kMiB);
  REQUIRE(bytes(result, HoleReason::pending) == 30 * kMiB);
  REQUIRE(result.total.holes == 4);
  REQUIRE(result.total.largest_free == 100 * kMiB);
  REQUIRE(result.total.utilisation() == Approx(80.0 / 330));
  REQUIRE(result.total.availability() == Approx(100.0 / 250));
  REQUIRE(result.total.gap_index() ==
          Approx((10.0 * 10 + 30.0 * 30 + 100.0 * 100 + 80.0 * 80) / (330.0 * 330)));
  REQUIRE(result.pins.size() == 1);
  REQUIRE(result.pins[0].pinned == 80 * kMiB);
  REQUIRE(result.pins[0].bytes == 20 * kMiB);
}

TEST_CASE("whole pages of an expandable segment can go back although blocks live in it") {
  Laid recording;
  recording.map(kBase, 100 * kMiB)
      .block(kBase, 10 * kMiB, 10 * kMiB, kEventExpandable)
      .block(kBase + 70 * kMiB, 30 * kMiB, 30 * kMiB, kEventExpandable);
  const Fragmentation result = at_end(recording);
  // The hole is 10..70 MiB: the pages 20..40 and 40..60.
  REQUIRE(bytes(result, HoleReason::releasable) == 40 * kMiB);
  REQUIRE(bytes(result, HoleReason::reusable) == 20 * kMiB);
  REQUIRE(result.total.holes == 1);
  REQUIRE(result.total.gap_index() == Approx(0.36));
}

TEST_CASE("a segment is drawn in proportion") {
  FragmentedSegment segment;
  segment.address = 1000;
  segment.size = 80;
  segment.blocks = {{1000, 20, 20, 0, false},
                    {1024, 2, 2, 0, false},
                    {1040, 10, 10, 0, true},
                    {1070, 6, 6, 0, false}};
  REQUIRE(segment_bar(segment, 8) == "##-.p..+");
}

TEST_CASE("a report carries the replay, and JSON the same numbers") {
  const auto recording = open_recording(kSnapshots / "segment-churn.pickle.zst");
  const Timeline timeline = survey(*recording);
  const FragmentationReport report = report_fragmentation(*recording, timeline, 0, "reserved-peak");
  REQUIRE(report.replay_exact);
  REQUIRE(report.predictions.size() == 7);
  REQUIRE(report.predictions.front().saving() >= report.predictions.back().saving());
  REQUIRE(report.ideal->lower_bound <= report.ideal->best_found);
  REQUIRE(report.ideal->best_found <= report.reserved_peak);
  // Blocks are rounded to 512 bytes: what was alive at once is at least the peak of requests.
  REQUIRE(report.ideal->lower_bound >= 4351237120);
  const auto json = json_report(report, recording->definitions());
  REQUIRE(json["reserved"] == report.now.total.reserved);
  REQUIRE(json["segment_list"].size() == report.now.total.segments);
  REQUIRE(json["replay"]["exact"] == true);
  uint64_t holes = 0;
  for (const auto& segment : json["segment_list"])
    for (const auto& hole : segment["holes"]) holes += hole["size"].get<uint64_t>();
  REQUIRE(holes == report.now.total.free);
  for (const std::string& line : {std::string("utilisation"), std::string("expandable_segments")})
    REQUIRE(text_report(recording->info(), report, 5).find(line) != std::string::npos);
}

TEST_CASE("lines of the text fit a terminal") {
  for (const char* name : {"segment-churn", "many-free-blocks", "oom-3gpu-expandable"}) {
    const auto recording = open_recording(kSnapshots / (std::string(name) + ".pickle.zst"));
    const Timeline timeline = survey(*recording);
    const std::string text =
        text_report(recording->info(), report_fragmentation(*recording, timeline, 0, ""), 10);
    size_t column = 0;
    for (const char c : text) {
      column = c == '\n' ? 0 : column + 1;
      INFO(text);
      REQUIRE(column <= 92);
    }
  }
}

TEST_CASE("a change of settings is named by what changes") {
  const auto from = AllocatorSettings::parse("expandable_segments:True,max_split_size_mb:64");
  REQUIRE(settings_change(from, AllocatorSettings::parse("max_split_size_mb:64")) ==
          "without expandable_segments:True");
  REQUIRE(settings_change(
              from, AllocatorSettings::parse("expandable_segments:True,max_split_size_mb:128")) ==
          "max_split_size_mb:128");
}

}  // namespace vramtrack
