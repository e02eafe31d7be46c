// The statistics of leak detection, against values worked out by hand and against random series
// whose truth is known.
#include "diagnosis/leaks/trend.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace vramtrack {
namespace {

TEST_CASE("a strictly rising series has the textbook statistics") {
  // n = 10: S = 45, variance = 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125), p = 8.31e-5.
  std::vector<double> series;
  series.reserve(10);
  for (int i = 0; i < 10; ++i) series.push_back(5.0 + 3.0 * i);
  const Trend trend = measure_trend(series);
  CHECK(trend.slope == Approx(3));
  CHECK(trend.tau == Approx(1));
  CHECK(trend.p_value == Approx(8.3e-5).epsilon(0.02));
}

TEST_CASE("ties and outliers leave the slope alone") {
  std::vector<double> series;
  series.reserve(60);
  for (int i = 0; i < 60; ++i) series.push_back(100.0 + 2.0 * i);
  for (int i = 5; i < 60; i += 10) series[static_cast<size_t>(i)] = 10'000;
  CHECK(measure_trend(series).slope == Approx(2).epsilon(0.01));
  CHECK(measure_trend(std::vector<double>(50, 7.0)).p_value == 1);
}

TEST_CASE("a long series is thinned without changing its slope") {
  std::vector<double> series;
  series.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) series.push_back(0.5 * i + ((i * 7919) % 13));
  const Trend trend = measure_trend(series);
  CHECK(trend.slope == Approx(0.5).epsilon(0.001));
  CHECK(trend.p_value < 1e-6);
}

// First-order autoregressive noise: each value remembers 0.8 of the one before it.
std::vector<double> remembering_noise(unsigned seed, size_t n) {
  std::mt19937 random(seed);
  std::normal_distribution<double> step;
  std::vector<double> series;
  double value = 0;
  for (size_t i = 0; i < n + 100; ++i) {
    value = 0.8 * value + step(random);
    if (i >= 100) series.push_back(value);
  }
  return series;
}

TEST_CASE("series that remember do not count as growth") {
  int alarms = 0;
  constexpr int kSeries = 400;
  for (unsigned seed = 0; seed < kSeries; ++seed)
    alarms += measure_trend(remembering_noise(seed, 120)).p_value < 0.001 ? 1 : 0;
  CHECK(alarms <= kSeries / 100);  // uncorrected, every tenth would alarm
}

TEST_CASE("a slow leak under noise is found, and its rate") {
  int found = 0;
  int covered = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<double> series = remembering_noise(seed, 200);
    for (size_t i = 0; i < series.size(); ++i) series[i] += 0.1 * static_cast<double>(i);
    const Trend trend = measure_trend(series);
    if (trend.p_value > 0.001) continue;
    ++found;
    covered += trend.slope_low <= 0.1 && 0.1 <= trend.slope_high ? 1 : 0;
  }
  CHECK(found >= 48);
  CHECK(covered >= found * 9 / 10);  // of a 95 % interval
}

TEST_CASE("the false-discovery rate follows Benjamini and Yekutieli") {
  // Four tests at 5 %: the harmonic sum is 25/12, the bounds 0.006, 0.012, 0.018, 0.024.
  const std::vector<bool> found = discoveries({0.030, 0.005, 0.011, 0.5}, 0.05);
  CHECK(found == std::vector<bool>{false, true, true, false});
  CHECK(discoveries({}, 0.05).empty());
}

TEST_CASE("a full cache has levelled off, a leak has not") {
  std::vector<double> cache;
  std::vector<double> leak;
  for (int i = 0; i < 100; ++i) {
    cache.push_back(std::min(i, 40) * 10.0);
    leak.push_back(i * 10.0);
  }
  CHECK(has_levelled_off(cache));
  CHECK_FALSE(has_levelled_off(leak));
}

}  // namespace
}  // namespace vramtrack
