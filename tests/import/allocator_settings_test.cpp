// The allocator's arithmetic against values worked out from its documented rules, and its settings
// as people write them.
#include <catch2/catch.hpp>

#include "import/allocator_settings.h"

namespace vramtrack {

TEST_CASE("requests are rounded as the defaults say") {
  const AllocatorSettings defaults;
  REQUIRE(defaults.round_size(1) == 512);
  REQUIRE(defaults.round_size(512) == 512);
  REQUIRE(defaults.round_size(513) == 1024);
  REQUIRE(defaults.round_size(5308694528) == 5308694528);
  REQUIRE(defaults.allocation_size(512) == 2 * kMiB);
  REQUIRE(defaults.allocation_size(kMiB) == 2 * kMiB);
  REQUIRE(defaults.allocation_size(kMiB + 512) == 20 * kMiB);
  REQUIRE(defaults.allocation_size(10 * kMiB - 512) == 20 * kMiB);
  REQUIRE(defaults.allocation_size(10 * kMiB) == 10 * kMiB);
  REQUIRE(defaults.allocation_size(10 * kMiB + 512) == 12 * kMiB);
}

TEST_CASE("roundup_power2_divisions rounds to a fraction of the power of two below") {
  // The example of PyTorch's documentation: 1200 with four divisions becomes 1280.
  const auto four = AllocatorSettings::parse("roundup_power2_divisions:4");
  REQUIRE(four.round_size(1200) == 1536);  // 1200 is below 512 * 4: the division does not apply
  REQUIRE(four.round_size(1200 * kMiB) == 1280 * kMiB);
  REQUIRE(four.round_size(1024 * kMiB) == 1024 * kMiB);
  REQUIRE(four.round_size(1281 * kMiB) == 1536 * kMiB);

  const auto table = AllocatorSettings::parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  REQUIRE(table.roundup_power2_divisions[0] == 1);
  REQUIRE(table.roundup_power2_divisions[8] == 1);
  REQUIRE(table.roundup_power2_divisions[9] == 2);
  REQUIRE(table.roundup_power2_divisions[10] == 4);
  REQUIRE(table.roundup_power2_divisions[11] == 8);
  REQUIRE(table.roundup_power2_divisions[15] == 8);
  REQUIRE(table.unknown.empty());
}

TEST_CASE("a block is split as pool and settings say") {
  const AllocatorSettings defaults;
  REQUIRE(defaults.should_split(2 * kMiB, 2 * kMiB - 512, true, false));
  REQUIRE_FALSE(defaults.should_split(20 * kMiB, 19 * kMiB, false, false));
  REQUIRE(defaults.should_split(20 * kMiB, 19 * kMiB - 512, false, false));
  REQUIRE(defaults.should_split(20 * kMiB, 20 * kMiB - 512, false, true));
  const auto limited = AllocatorSettings::parse("max_split_size_mb:128");
  REQUIRE(limited.should_split(1024 * kMiB, 127 * kMiB, false, false));
  REQUIRE_FALSE(limited.should_split(1024 * kMiB, 128 * kMiB, false, false));
}

TEST_CASE("settings are read as people write them") {
  const auto settings = AllocatorSettings::parse(
      " expandable_segments:True, max_split_size_mb:128,garbage_collection_threshold:0.8,"
      "new_key:[1:2,3:4],backend:cudaMallocAsync,max_split_size_mb:lots");
  REQUIRE(settings.expandable_segments);
  REQUIRE(settings.max_split_size == 128 * kMiB);
  REQUIRE(settings.garbage_collection_threshold == 0.8);
  REQUIRE(settings.backend == "cudaMallocAsync");
  REQUIRE(settings.unknown ==
          std::vector<std::string>{"new_key:[1:2,3:4]", "max_split_size_mb:lots"});
  REQUIRE(AllocatorSettings::parse(settings.text()).text() == settings.text());
  REQUIRE(AllocatorSettings::parse("").text().empty());
  REQUIRE(AllocatorSettings::parse("").unknown.empty());
}

TEST_CASE("resolved values of a snapshot stand above the text") {
  const auto settings = AllocatorSettings::of_recording(
      "max_split_size_mb:64", {{"allocator.max_split_size", "134217728"},
                               {"allocator.expandable_segments", "True"},
                               {"allocator.roundup_power2_divisions.4", "8"},
                               {"other", "1"}});
  REQUIRE(settings.max_split_size == 128 * kMiB);
  REQUIRE(settings.expandable_segments);
  REQUIRE(settings.roundup_power2_divisions[2] == 8);
  REQUIRE(
      AllocatorSettings::of_recording("", {{"allocator.max_split_size", "-1"}}).max_split_size ==
      AllocatorSettings::kUnlimited);
}

}  // namespace vramtrack
