#include "diagnosis/leaks/rate_interval.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace vramtrack {
namespace {

using Series = std::vector<double>;

struct Rate {
  double value = 0;
  double reach = 0;  // of its 95 % interval, to either side
};

// Student's t for 95 % on both sides, from the normal distribution's by the expansion of Cornish
// and Fisher: within 1 % from three degrees of freedom on.
double student_t(size_t degrees) {
  constexpr double z = 1.959964;
  const auto v = static_cast<double>(degrees);
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

// Of a series that next to never falls: lumps and the waits before them. Their sums give the rate;
// how far each lump is from what its wait should have brought gives the error, which is none for
// equal lumps at equal distances. There, where a lump's wait begins and ends is all that matters:
// the wait that the end cuts off is worth up to a lump.
std::optional<Rate> rate_of_lumps(const Series& series) {
  constexpr size_t kFewest = 4;
  const auto steps = static_cast<double>(series.size() - 1);
  const Rate whole{.value = (series.back() - series.front()) / steps};
  double squares = 0;
  size_t lumps = 0;
  size_t last = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    if (series[i] <= series[i - 1]) continue;
    const double off = series[i] - series[last] - whole.value * static_cast<double>(i - last);
    squares += off * off;
    last = i;
    ++lumps;
  }
  if (lumps < kFewest) return std::nullopt;
  const auto count = static_cast<double>(lumps);
  const double chance = student_t(lumps - 1) * std::sqrt(squares * count / (count - 1)) / steps;
  return Rate{.value = whole.value, .reach = chance + whole.value / count};
}

// Of any series that wanders: the rises over blocks of it, which are as good as independent.
std::optional<Rate> rate_of_blocks(const Series& series) {
  constexpr size_t kBlocks = 20;
  const size_t steps = series.size() - 1;
  if (steps < 2 * kBlocks) return std::nullopt;
  Series rates;
  double sum = 0;
  for (size_t block = 0; block < kBlocks; ++block) {
    const size_t from = block * steps / kBlocks;
    const size_t to = (block + 1) * steps / kBlocks;
    rates.push_back((series[to] - series[from]) / static_cast<double>(to - from));
    sum += rates.back();
  }
  const double mean = sum / kBlocks;
  double squares = 0;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  return Rate{.value = (series.back() - series.front()) / static_cast<double>(steps),
              .reach = student_t(kBlocks - 1) * std::sqrt(squares / (kBlocks - 1) / kBlocks)};
}

// Whether what is left about a line adds up instead of returning to it: the test of Kwiatkowski,
// Phillips, Schmidt and Shin (1992) of a stationary series about a trend, at 10 %: to
// take one that returns for one that wanders costs width, the other way round honesty.
bool wanders(const Series& series) {
  constexpr double kCritical = 0.119;
  constexpr size_t kLags = 4;
  const size_t n = series.size();
  const auto nd = static_cast<double>(n);
  double mean = 0;
  double xy = 0;
  double xx = 0;
  const double middle = (nd - 1) / 2;
  for (size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) - middle;
    mean += series[i] / nd;
    xy += x * series[i];
    xx += x * x;
  }
  Series rest(n);
  for (size_t i = 0; i < n; ++i)
    rest[i] = series[i] - mean - xy / xx * (static_cast<double>(i) - middle);
  double sums = 0;
  double sum = 0;
  double variance = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += rest[i];
    sums += sum * sum;
    variance += rest[i] * rest[i];
    for (size_t lag = 1; lag <= kLags && lag <= i; ++lag)
      variance += 2 * (1 - static_cast<double>(lag) / (kLags + 1)) * rest[i] * rest[i - lag];
  }
  return variance > 0 && sums / (nd * variance) > kCritical;
}

}  // namespace

bool only_takes(const Series& series) {
  constexpr double kGivenBack = 0.05;
  double taken = 0;
  double given_back = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    const double change = series[i] - series[i - 1];
    (change > 0 ? taken : given_back) += std::fabs(change);
  }
  return given_back <= kGivenBack * taken;
}

void allow_for_lumps(Trend& trend, const Series& series) {
  if (series.size() < 4) return;
  if (only_takes(series)) {
    const std::optional<Rate> rate = rate_of_lumps(series);
    if (!rate || rate->value <= 0) return;
    // On a scale of ratios: few large lumps make a rate that can be missed by more upwards.
    const double factor = std::exp(rate->reach / rate->value);
    trend.slope_low = std::min(trend.slope, rate->value / factor);
    trend.slope_high = std::max(trend.slope, rate->value * factor);
  } else if (wanders(series)) {
    const std::optional<Rate> rate = rate_of_blocks(series);
    if (!rate) return;
    trend.slope_low = std::min(trend.slope_low, rate->value - rate->reach);
    trend.slope_high = std::max(trend.slope_high, rate->value + rate->reach);
  }
}

}  // namespace vramtrack
