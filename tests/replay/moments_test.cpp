// The moments of a recording, and the state at each.
#include <catch2/catch.hpp>

#include "replay/builder.h"
#include "replay/timeline.h"
#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

using namespace vramtrack;
using namespace vramtrack::test;
using Catch::Matchers::Contains;

namespace {

constexpr uint64_t kSegment = 0x10000000;

// Reserved rises to 100 MiB, then allocated peaks at 60 in the smaller part, then an OOM at 50.
struct Story {
  Scratch scratch;
  std::unique_ptr<TraceFile> trace;
  uint64_t at_allocated = 0, at_reserved = 0, at_oom = 0, at_mark = 0, at_second_mark = 0;

  Story() {
    TraceWriter w;
    w.event({.kind = EventKind::step, .extra = 1});
    w.alloc(kSegment, 60 * MiB);
    w.block(kSegment, 10 * MiB);
    w.alloc(0x40000000, 40 * MiB);
    at_reserved = w.block(0x40000000, 2 * MiB);
    at_mark = w.event({.kind = EventKind::mark, .text = w.text("warm")});
    w.free_block(0x40000000, 2 * MiB);
    w.free(0x40000000);
    w.event({.kind = EventKind::step, .extra = 2});
    at_allocated = w.block(kSegment + 10 * MiB, 50 * MiB);
    w.free_block(kSegment, 10 * MiB);
    at_oom = w.event(
        {.kind = EventKind::out_of_memory, .device = 0, .size = 64 * MiB, .requested = 63 * MiB});
    w.free_block(kSegment + 10 * MiB, 50 * MiB);
    at_second_mark = w.event({.kind = EventKind::mark, .text = w.text("warm")});
    w.event({.kind = EventKind::step, .extra = 3});
    trace = open_trace(scratch.file("t.vrt", w.bytes()));
  }
};

}  // namespace

TEST_CASE("Peaks, high-water marks and OOMs are found where they are") {
  const Story story;
  const Timeline timeline = survey(*story.trace);
  const DeviceTimeline* device = timeline.device(0);
  REQUIRE(device != nullptr);
  CHECK(device->has_blocks);
  CHECK(device->most_allocated == 60 * MiB);
  CHECK(device->allocated_peak.sequence == story.at_allocated);
  CHECK(device->allocated_peak.step == 2);
  CHECK(device->most_reserved == 100 * MiB);
  CHECK(device->reserved_peak.sequence == story.at_reserved);
  CHECK(device->most_in_use == 100 * MiB);
  REQUIRE(device->ooms.size() == 1);
  CHECK(device->ooms[0].moment.sequence == story.at_oom);
  CHECK(device->ooms[0].requested == 63 * MiB);
  CHECK(timeline.steps.size() == 3);
  CHECK(timeline.marks.size() == 2);
  CHECK(timeline.events == story.trace->info().event_count);
}

TEST_CASE("A moment is found by what the user calls it") {
  const Story story;
  const Timeline timeline = survey(*story.trace);
  const auto at = [&](const std::string& name) { return find_moment(timeline, name, 0).sequence; };
  CHECK(at("") == story.at_oom);
  CHECK(at("oom") == story.at_oom);
  CHECK(at("allocated-peak") == story.at_allocated);
  CHECK(at("reserved-peak") == story.at_reserved);
  CHECK(at("mark:warm") == story.at_second_mark);
  CHECK(at("mark:warm#1") == story.at_mark);
  CHECK(at("end") == timeline.end.sequence);
  CHECK(find_moment(timeline, "step:2", 0).sequence < story.at_allocated);
  CHECK(find_moment(timeline, "0.5", 0).time_ns == 500'000'000);
  CHECK_THROWS_WITH(at("mark:cold"), Contains("no mark 'cold'") && Contains("warm"));
  CHECK_THROWS_WITH(at("mark:warm#3"), Contains("no mark"));
  CHECK_THROWS_WITH(at("noon"), Contains("allocated-peak"));
  CHECK_THROWS_WITH(at("-1"), Contains("seconds"));
  CHECK_THROWS_AS(at("step:9"), InputError);
  CHECK_THROWS_AS(find_moment(timeline, "peak", 5), InputError);
}

TEST_CASE("The state at a moment is the state after its event") {
  const Story story;
  const Timeline timeline = survey(*story.trace);
  const auto allocated = [&](const std::string& name) {
    return state_at(*story.trace, find_moment(timeline, name, 0)).totals(0).allocated;
  };
  CHECK(allocated("allocated-peak") == 60 * MiB);
  CHECK(allocated("oom") == 50 * MiB);
  CHECK(allocated("mark:warm#1") == 12 * MiB);
  CHECK(allocated("end") == 0);
  CHECK(allocated("step:1") == 0);
  CHECK(allocated("1e6") == 0);
}

TEST_CASE("Many moments are visited in one pass") {
  const Story story;
  const Timeline timeline = survey(*story.trace);
  std::vector<Moment> moments;
  for (const char* name : {"end", "oom", "allocated-peak", "oom", "mark:warm#1", "0"}) {
    moments.push_back(find_moment(timeline, name, 0));
  }
  std::vector<uint64_t> allocated(moments.size(), ~uint64_t{0});
  visit_states(*story.trace, moments, [&](size_t index, const MemoryState& state) {
    CHECK(allocated[index] == ~uint64_t{0});
    allocated[index] = state.totals(0).allocated;
  });
  CHECK(allocated == std::vector<uint64_t>{0, 50 * MiB, 60 * MiB, 50 * MiB, 12 * MiB, 0});
}

TEST_CASE("The picture is small and keeps every peak") {
  TraceWriter w({.codec = Codec::zstd, .slot_bytes = 65536});
  w.alloc(kSegment, 512 * MiB);
  constexpr uint64_t kEvents = 30000;
  for (uint64_t i = 0; i < kEvents; ++i) {
    const uint64_t size = i == 17001 ? 300 * MiB : MiB;  // one narrow spike
    w.block(kSegment, size);
    w.free_block(kSegment, size);
  }
  const Scratch scratch;
  const Timeline timeline = survey(*open_trace(scratch.file("t.vrt", w.bytes())));
  const std::vector<Stretch>& picture = timeline.device(0)->picture;
  CHECK(picture.size() <= Timeline::kMostStretches);
  CHECK(picture.size() >= Timeline::kMostStretches / 2);
  uint64_t most = 0;
  uint64_t least = ~uint64_t{0};
  for (size_t i = 0; i < picture.size(); ++i) {
    most = std::max(most, picture[i].most_allocated);
    least = std::min(least, picture[i].least_allocated);
    if (i != 0) REQUIRE(picture[i].first_time_ns >= picture[i - 1].last_time_ns);
  }
  CHECK(most == 300 * MiB);
  CHECK(least == 0);
}

TEST_CASE("Without a caching allocator the driver's allocations are what is allocated") {
  TraceWriter w;
  w.alloc(kSegment, 5 * MiB);
  w.alloc(0x40000000, 3 * MiB);
  w.free(kSegment);
  const Scratch scratch;
  const Timeline timeline = survey(*open_trace(scratch.file("t.vrt", w.bytes())));
  CHECK_FALSE(timeline.device(0)->has_blocks);
  CHECK(timeline.device(0)->most_allocated == 8 * MiB);
}
