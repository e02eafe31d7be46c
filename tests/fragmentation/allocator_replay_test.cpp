// The simulated allocator against what real ones did on real GPUs: every address and every segment
// event of every published snapshot with a usable trace.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "import/open.h"
#include "replay/allocator_prediction.h"

namespace vramtrack {
namespace {

std::unique_ptr<Recording> open_case(const std::string& name) {
  return open_recording(std::filesystem::path(VRAMTRACK_TEST_DATA) / "snapshots" /
                        (name + ".pickle.zst"));
}

const std::filesystem::path kRuns =
    std::filesystem::path(VRAMTRACK_TEST_DATA) / "snapshots" / "simulated";

std::unique_ptr<Recording> open_run(const std::string& pattern, const std::string& setting) {
  return open_recording(kRuns / (pattern + "." + setting + ".pickle.zst"));
}

struct Case {
  std::string name;
  int16_t device;
  uint64_t requests;        // from expected.json: alloc
  uint64_t segment_events;  // segment_* together
};

const std::vector<Case> kCases = {
    {"oom-3gpu-expandable", 0, 2434, 175}, {"oom-3gpu-expandable", 1, 199, 46},
    {"oom-3gpu-expandable", 2, 392, 78},   {"newest-keys", 0, 1721, 0},
    {"train-ctx128", 0, 6526, 0},          {"train-ctx256", 0, 6624, 0},
    {"train-ctx512", 0, 7591, 1},          {"train-ctx1024", 0, 7591, 0},
    {"segment-churn", 0, 2912, 840},       {"mostly-cached", 0, 782, 39},
};

}  // namespace

TEST_CASE("the replay gives every address and every segment event of the published traces") {
  for (const Case& wanted : kCases) {
    INFO(wanted.name << " device " << wanted.device);
    const auto recording = open_case(wanted.name);
    const WhatIf what_if(*recording, wanted.device);
    const DriverCounts& counts = what_if.replay();
    INFO(counts.first_difference);
    REQUIRE(counts.requests == wanted.requests);
    REQUIRE(counts.addresses_equal == wanted.requests);
    REQUIRE(counts.segment_events == wanted.segment_events);
    REQUIRE(counts.segment_events_equal == wanted.segment_events);
    REQUIRE(counts.lost_blocks == 0);
    REQUIRE(what_if.exact());
  }
}

TEST_CASE("a run of its own under the settings in force reserves what was recorded") {
  for (const Case& wanted : kCases) {
    INFO(wanted.name << " device " << wanted.device);
    const auto recording = open_case(wanted.name);
    const WhatIf what_if(*recording, wanted.device);
    const Prediction prediction = what_if.predict(what_if.settings());
    REQUIRE(prediction.replay_exact);
    REQUIRE(prediction.reserved_peak.low == what_if.replay().recorded_reserved_peak);
    REQUIRE(prediction.reserved_peak.high == what_if.replay().recorded_reserved_peak);
    REQUIRE(prediction.saving() == 0);
  }
}

// Real PyTorch 2.15 on the simulated GPU, its own snapshots; record_runs.py made them.
TEST_CASE("the replay gives every address and segment event of real runs of PyTorch") {
  size_t runs = 0;
  size_t expandable = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRuns)) {
    INFO(entry.path());
    const auto recording = open_recording(entry.path());
    const WhatIf what_if(*recording, 0);
    INFO(what_if.replay().first_difference);
    REQUIRE(what_if.replay().requests > 0);
    REQUIRE(what_if.replay().segment_events > 0);
    REQUIRE(what_if.exact());
    ++runs;
    expandable += what_if.settings().expandable_segments ? 1 : 0;
  }
  REQUIRE(runs >= 15);
  REQUIRE(expandable >= 5);
}

TEST_CASE("what is predicted for another setting is what a run with it reserves") {
  const std::map<std::string, std::string> settings = {
      {"def", ""},
      {"exp", "expandable_segments:True"},
      {"split", "max_split_size_mb:64"},
      {"round8", "roundup_power2_divisions:[1:2,16:4,>:8]"},
  };
  struct Pair {
    std::string pattern, from, to;
  };
  // Patterns in which every call of empty_cache() released something, so that it is recorded.
  const std::vector<Pair> pairs = {
      {"churn1", "def", "exp"},    {"churn1", "exp", "def"},    {"churn1", "def", "split"},
      {"churn1", "def", "round8"}, {"churn2", "def", "exp"},    {"churn2", "exp", "def"},
      {"big2", "def", "exp"},      {"big2", "exp", "def"},      {"train", "def", "exp"},
      {"train", "exp", "def"},     {"train2", "def", "exp"},    {"train2", "exp", "def"},
      {"train2", "def", "split"},  {"train2", "def", "round8"}, {"grow", "def", "exp"},
      {"grow", "exp", "def"},      {"grow", "def", "round8"},   {"record", "def", "exp"},
  };
  for (const Pair& pair : pairs) {
    INFO(pair.pattern << " " << pair.from << " to " << pair.to);
    const auto from = open_run(pair.pattern, pair.from);
    const auto to = open_run(pair.pattern, pair.to);
    const WhatIf real(*to, 0);
    const Prediction prediction =
        WhatIf(*from, 0).predict(AllocatorSettings::parse(settings.at(pair.to)));
    REQUIRE(prediction.reserved_peak.low == real.replay().recorded_reserved_peak);
    REQUIRE(prediction.reserved_peak.high == real.replay().recorded_reserved_peak);
  }
}

TEST_CASE(
    "the out-of-memory error of the three-GPU job is one of capacity, whatever the settings") {
  const auto recording = open_case("oom-3gpu-expandable");
  const WhatIf what_if(*recording, 1);
  REQUIRE(what_if.settings().expandable_segments);
  REQUIRE(what_if.replay().oom_recorded);
  // What was reserved after the cache had been given back, and what the device had free.
  REQUIRE(what_if.replay().oom_capacity == 84202749952 + 95682560);
  REQUIRE(what_if.predict(what_if.settings()).oom_avoided == false);
  for (const AllocatorSettings& other : what_if.alternatives()) {
    INFO(other.text());
    REQUIRE(what_if.predict(other).oom_avoided == false);
  }
}

TEST_CASE("expandable segments would have helped the job that churns segments") {
  const auto recording = open_case("segment-churn");
  const WhatIf what_if(*recording, 0);
  const auto prediction = what_if.predict(AllocatorSettings::parse("expandable_segments:True"));
  REQUIRE(prediction.saving() > 0);
  // It can never reserve less than what was live: the peak of requests in expected.json.
  REQUIRE(prediction.reserved_peak.low >= 4351237120);
}

TEST_CASE("an inconsistent trace is not followed blindly") {
  const auto recording = open_case("inconsistent-trace");
  const WhatIf what_if(*recording, 0);
  REQUIRE_FALSE(what_if.exact());
  REQUIRE_FALSE(what_if.replay().first_difference.empty());
  const auto prediction = what_if.predict(AllocatorSettings::parse("expandable_segments:True"));
  REQUIRE_FALSE(prediction.replay_exact);
  REQUIRE_FALSE(prediction.notes.empty());
}

TEST_CASE("without a trace there is nothing to replay") {
  const auto recording = open_case("many-free-blocks");
  REQUIRE_FALSE(WhatIf(*recording, 0).possible());
}

}  // namespace vramtrack
