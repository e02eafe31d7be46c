// A sample is unbiased and knows its error; its functions agree with those of libm.
#include "hooks/sampling.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "record/address_set.h"
#include "record/config.h"

namespace {

using namespace vramtrack;
constexpr double kSampleBytes = 1 << 20;

void begin() {
  setenv("VRAMTRACK_SAMPLE", "1M", 1);
  setenv("VRAMTRACK_SAMPLE_SEED", "20", 1);
  read_config();
}

TEST_CASE("the tracer's own logarithm and exponential") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-40, 0);
  for (int i = 0; i < 10'000; ++i) {
    const double x = std::exp2(exponent(random));
    CHECK(natural_logarithm(x) == Approx(std::log(x)).epsilon(1e-12).margin(1e-13));
    CHECK(share_hit(x) == Approx(-std::expm1(-x)).epsilon(1e-9));
    CHECK(share_hit(x * 50) == Approx(-std::expm1(-x * 50)).epsilon(1e-9));
  }
  CHECK(natural_logarithm(1) == 0);
  CHECK(share_hit(0) == 0);
  CHECK(share_hit(1e9) == 1);
}

TEST_CASE("estimates of sums are right on average, and their errors are") {
  begin();
  std::mt19937_64 random(2);
  std::exponential_distribution<double> size(1.0 / 200'000);
  constexpr int kTrials = 300;
  constexpr int kBlocks = 2000;
  double error_sum = 0;
  double squares_of_standardised = 0;
  int covered = 0;
  uint64_t kept = 0;
  uint64_t address = 4096;
  for (int trial = 0; trial < kTrials; ++trial) {
    double truth = 0;
    double estimate = 0;
    double variance = 0;
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t bytes = (static_cast<uint64_t>(size(random)) / 512 + 1) * 512;
      truth += static_cast<double>(bytes);
      Event event{.kind = EventKind::block_alloc, .address = address += 512, .size = bytes};
      if (!keep_allocation(event)) continue;
      CHECK(event.kind == EventKind::sampled_block);
      CHECK(keep_free(event));
      CHECK_FALSE(keep_free(event));
      ++kept;
      const auto stands_for = static_cast<double>(event.extra);
      estimate += stands_for;
      variance += stands_for * (stands_for - static_cast<double>(bytes));
    }
    const double standardised = (estimate - truth) / std::sqrt(variance);
    error_sum += (estimate - truth) / truth;
    squares_of_standardised += standardised * standardised;
    covered += std::fabs(standardised) < 1.96 ? 1 : 0;
  }
  // About one block in six is kept, so the error of one trial is some 5 %, that of the mean of all
  // trials 0.3 %.
  CHECK(kept > kTrials * kBlocks / 10);
  CHECK(kept < kTrials * kBlocks / 4);
  CHECK(std::fabs(error_sum / kTrials) < 0.012);
  CHECK(squares_of_standardised / kTrials == Approx(1).margin(0.25));
  CHECK(covered > kTrials * 90 / 100);
}

TEST_CASE("large blocks are always kept and stand for themselves") {
  begin();
  for (uint64_t i = 1; i <= 100; ++i) {
    const auto bytes = static_cast<uint64_t>(40 * kSampleBytes);
    Event event{.kind = EventKind::block_alloc, .address = i << 32, .size = bytes};
    CHECK(keep_allocation(event));
    CHECK(event.extra == bytes);
  }
}

TEST_CASE("a set of addresses that come and go keeps its size") {
  static AddressSet set;
  std::set<uint64_t> model;
  std::mt19937_64 random(3);
  for (int i = 0; i < 400'000; ++i) {
    const uint64_t address = (1 + random() % 20'000) * 512;
    const bool there = model.erase(address) != 0;
    REQUIRE(set.erase(address) == there);
    if (there) continue;
    REQUIRE(set.insert(address));
    model.insert(address);
  }
  for (const uint64_t address : model) CHECK(set.erase(address));
}

}  // namespace
