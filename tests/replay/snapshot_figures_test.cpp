// Published snapshots, replayed, against the figures of an independent reader (expected.json).
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "import/open.h"
#include "replay/timeline.h"

using namespace vramtrack;

namespace {

nlohmann::json expected_figures() {
  std::ifstream in(std::string(VRAMTRACK_TEST_DATA) + "/snapshots/expected.json");
  return nlohmann::json::parse(in);
}

}  // namespace

TEST_CASE("The final state of each published snapshot is replayed to the byte") {
  const nlohmann::json expected = expected_figures();
  REQUIRE(expected.size() >= 13);
  for (const auto& [name, figures] : expected.items()) {
    INFO(name);
    const auto recording =
        open_recording(std::string(VRAMTRACK_TEST_DATA) + "/snapshots/" + name + ".pickle.zst");
    const Timeline timeline = survey(*recording);
    const MemoryState state = state_at(*recording, timeline.end);
    for (const auto& [ordinal, device] : figures["devices"].items()) {
      const auto index = static_cast<int16_t>(std::stoi(ordinal));
      INFO("device " << index);
      const DeviceTotals& totals = state.totals(index);
      // A block outside every segment is not in these figures; one file has them.
      CHECK(totals.reserved == device["reserved"].get<uint64_t>());
      CHECK(totals.allocated - totals.unbacked == device["allocated"].get<uint64_t>());
      if (totals.unbacked == 0) {
        CHECK(totals.requested == device["requested"].get<uint64_t>());
        CHECK(totals.allocated + totals.pending == device["active"].get<uint64_t>());
      }
      CHECK(state.segments(index).size() == device["segments"].get<size_t>());
    }
    for (const auto& [ordinal, trace] : figures["traces"].items()) {
      const DeviceTimeline* device = timeline.device(static_cast<int16_t>(std::stoi(ordinal)));
      if (device == nullptr || trace["events"] == 0) continue;
      INFO("trace " << ordinal);
      if (state.totals(device->device).unbacked == 0 && figures["inconsistent_segments"] == 0) {
        CHECK(device->most_requested == trace["peak_requested"].get<uint64_t>());
      }
    }
    uint64_t ooms = 0;
    for (const auto& [ordinal, device] : timeline.devices) ooms += device.ooms.size();
    CHECK(ooms == figures["oom"].size());
  }
}
