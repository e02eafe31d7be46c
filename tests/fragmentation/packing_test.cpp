// Packing with known lifetimes: bounds, validity, and problems that are known to be hard.
#include "replay/packing.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace vramtrack {
namespace {

constexpr uint64_t kCapacity = 1'048'576;

std::vector<PackingItem> problem(const std::string& name) {
  std::ifstream in(std::filesystem::path(VRAMTRACK_TEST_DATA) / "minimalloc" / name);
  std::vector<PackingItem> items;
  std::string line;
  std::getline(in, line);  // id,lower,upper,size
  while (std::getline(in, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::string id;
    PackingItem item;
    fields >> id >> item.begin >> item.end >> item.size;
    items.push_back(item);
  }
  REQUIRE_FALSE(items.empty());
  return items;
}

// Compares every pair; knows nothing of how the packing was made.
bool overlap_free(const std::vector<PackingItem>& items, const Packing& packing) {
  for (size_t a = 0; a < items.size(); ++a)
    for (size_t b = a + 1; b < items.size(); ++b) {
      const bool together = items[a].begin < items[b].end && items[b].begin < items[a].end;
      const bool apart = packing.offsets[a] + items[a].size <= packing.offsets[b] ||
                         packing.offsets[b] + items[b].size <= packing.offsets[a];
      if (together && !apart) return false;
    }
  return true;
}

uint64_t height(const std::vector<PackingItem>& items, const Packing& packing) {
  uint64_t most = 0;
  for (size_t i = 0; i < items.size(); ++i)
    most = std::max(most, packing.offsets[i] + items[i].size);
  return most;
}

}  // namespace

TEST_CASE("max-load counts what is alive at once") {
  const std::vector<PackingItem> items = {{0, 10, 4}, {5, 15, 8}, {10, 20, 16}, {20, 21, 100}};
  REQUIRE(max_load(items) == 100);
  REQUIRE(max_load(std::span(items).first(3)) == 24);  // [10, 15): the first has just ended
  REQUIRE(max_load({}) == 0);
}

TEST_CASE("the small example packs to its known optimum") {
  const auto items = problem("input.12.csv");  // its capacity is 12
  REQUIRE(max_load(items) == 12);
  const Packing packing = pack(items, 1000);
  REQUIRE(packing.height == 12);
  REQUIRE(overlap_free(items, packing));
}

TEST_CASE("a problem whose optimum is above its max-load") {
  // Four items in a ring: each overlaps the next, so that max-load is 3, and 3 does not suffice.
  const std::vector<PackingItem> items = {{0, 4, 2}, {3, 7, 1}, {2, 4, 1}, {6, 9, 2},
                                          {4, 5, 2}, {5, 7, 0}, {8, 10, 1}};
  const Packing packing = pack(items, 10'000);
  REQUIRE(packing.height >= max_load(items));
  REQUIRE(overlap_free(items, packing));
  REQUIRE(is_valid(items, packing));
}

TEST_CASE("a bad packing is recognised") {
  const std::vector<PackingItem> items = {{0, 10, 4}, {5, 15, 8}};
  REQUIRE(is_valid(items, {{0, 4}, 12}));
  REQUIRE_FALSE(is_valid(items, {{0, 3}, 11}));
  REQUIRE_FALSE(is_valid(items, {{0, 4}, 11}));
  REQUIRE_FALSE(is_valid(items, {{0}, 12}));
}

TEST_CASE("hard problems: within the capacity where a little effort finds it") {
  for (const char* name : {"A", "J"}) {
    INFO(name);
    const auto items = problem(std::string(name) + ".1048576.csv");
    const auto packing = pack_within(items, kCapacity, 100'000);
    REQUIRE(packing.has_value());
    REQUIRE(overlap_free(items, *packing));
    REQUIRE(height(items, *packing) <= kCapacity);
  }
}

TEST_CASE("the same effort gives the same packing") {
  const auto items = problem("D.1048576.csv");
  REQUIRE(pack(items, 20'000).offsets == pack(items, 20'000).offsets);
}

TEST_CASE("hard problems: all of them", "[.slow]") {
  size_t within = 0;
  for (const char name : std::string("ABCDEFGHIJK")) {
    INFO(name);
    const auto items = problem(std::string(1, name) + ".1048576.csv");
    if (const auto packing = pack_within(items, kCapacity, 1'000'000)) {
      REQUIRE(overlap_free(items, *packing));
      REQUIRE(height(items, *packing) <= kCapacity);
      ++within;
      continue;
    }
    const auto packing = pack_within(items, kCapacity + kCapacity / 20, 4'000'000);
    REQUIRE(packing.has_value());
    REQUIRE(overlap_free(items, *packing));
  }
  REQUIRE(within >= 8);
}

}  // namespace vramtrack
