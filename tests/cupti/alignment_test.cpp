// Which members of a series are missing from another: against trying everything.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "diagnosis/witness/alignment.h"

namespace vramtrack {
namespace {

uint64_t cost_of(const std::vector<uint64_t>& fewer, const std::vector<uint64_t>& more,
                 const std::vector<size_t>& partners) {
  uint64_t cost = 0;
  for (size_t i = 0; i < fewer.size(); ++i) {
    const uint64_t a = fewer[i], b = more[partners[i]];
    cost += a > b ? a - b : b - a;
  }
  return cost;
}

// Every way to leave members of `more` out.
uint64_t least_cost(const std::vector<uint64_t>& fewer, const std::vector<uint64_t>& more) {
  std::vector<bool> chosen(more.size());
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(fewer.size()), true);
  uint64_t least = UINT64_MAX;
  do {
    std::vector<size_t> partners;
    for (size_t i = 0; i < more.size(); ++i)
      if (chosen[i]) partners.push_back(i);
    least = std::min(least, cost_of(fewer, more, partners));
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return least;
}

TEST_CASE("the member that is missing is found by its time") {
  const std::vector<uint64_t> hooks = {10, 50, 90};
  CHECK(align(hooks, std::vector<uint64_t>{9, 30, 49, 89}) == std::vector<size_t>{0, 2, 3});
  CHECK(align(hooks, std::vector<uint64_t>{9, 49, 70, 89}) == std::vector<size_t>{0, 1, 3});
  CHECK(align(hooks, std::vector<uint64_t>{9, 49, 89}) == std::vector<size_t>{0, 1, 2});
  CHECK(align({}, std::vector<uint64_t>{1, 2}).empty());
}

TEST_CASE("random series are paired at the least cost, in order") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> more(1 + random() % 9);
    for (uint64_t& time : more) time = random() % 100;
    std::vector<uint64_t> fewer(random() % (more.size() + 1));
    for (uint64_t& time : fewer) time = random() % 100;
    std::sort(more.begin(), more.end());
    std::sort(fewer.begin(), fewer.end());
    const std::vector<size_t> partners = align(fewer, more);
    REQUIRE(partners.size() == fewer.size());
    CHECK(std::adjacent_find(partners.begin(), partners.end(), std::greater_equal<>()) ==
          partners.end());
    CHECK(cost_of(fewer, more, partners) == least_cost(fewer, more));
  }
}

}  // namespace
}  // namespace vramtrack
