#include "diagnosis/leaks/trend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace vramtrack {
namespace {

constexpr size_t kMostSamples = 400;  // all pairs of these: 80,000

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The median of `width` neighbours, again and again; the rest at the end forms a bin of its own.
std::vector<double> thin(const std::vector<double>& series, size_t width) {
  std::vector<double> bins;
  for (size_t at = 0; at + width <= series.size(); at += width)
    bins.push_back(median({series.begin() + static_cast<std::ptrdiff_t>(at),
                           series.begin() + static_cast<std::ptrdiff_t>(at + width)}));
  return bins;
}

double normal_tail(double z) {
  return std::erfc(std::fabs(z) / std::sqrt(2.0));  // both sides
}

// Ranks with ties averaged.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&values](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j - 1) / 2 + 1;
    i = j;
  }
  return ranks;
}

// How much larger the variance of S is than for independent samples: the larger of two estimates
// from the ranks of the detrended series. Hamed and Rao's sums the autocorrelations that differ
// from 0 at 95 %; with a long memory and a short series they come out too small, so the second
// assumes a first-order process with the lag-1 correlation, corrected for its bias in short series
// (Kendall 1954).
double variance_inflation(const std::vector<double>& series, double slope) {
  const size_t n = series.size();
  std::vector<double> detrended(n);
  for (size_t i = 0; i < n; ++i) detrended[i] = series[i] - slope * static_cast<double>(i);
  const std::vector<double> ranks = ranks_of(detrended);
  const double nd = static_cast<double>(n);
  const double mean = std::accumulate(ranks.begin(), ranks.end(), 0.0) / nd;
  double variance = 0;
  for (const double rank : ranks) variance += (rank - mean) * (rank - mean);
  if (variance == 0) return 1;
  const auto correlation = [&](size_t lag) {
    double sum = 0;
    for (size_t i = 0; i + lag < n; ++i) sum += (ranks[i] - mean) * (ranks[i + lag] - mean);
    return sum / variance;
  };

  double hamed_rao = 0;
  for (size_t lag = 1; lag + 3 < n; ++lag) {
    const double r = correlation(lag);
    if (std::fabs(r) <= 1.96 / std::sqrt(nd)) continue;
    const double l = static_cast<double>(lag);
    hamed_rao += (nd - l) * (nd - l - 1) * (nd - l - 2) * r;
  }
  hamed_rao = 1 + 2 * hamed_rao / (nd * (nd - 1) * (nd - 2));

  const double lag1 = std::clamp((nd * correlation(1) + 1) / (nd - 4 + 1e-9), 0.0, 0.99);
  double first_order = 1;
  double power = 1;
  for (size_t lag = 1; lag < n; ++lag) {
    power *= lag1;
    first_order += 2 * (1 - static_cast<double>(lag) / nd) * power;
  }
  // Never below 1: a negative correction would make a trend look surer than independent samples do.
  return std::max({1.0, hamed_rao, first_order});
}

double tie_correction(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (size_t i = 0; i < values.size();) {
    size_t j = i;
    while (j < values.size() && values[j] == values[i]) ++j;
    const double t = static_cast<double>(j - i);
    sum += t * (t - 1) * (2 * t + 5);
    i = j;
  }
  return sum;
}

}  // namespace

Trend measure_trend(const std::vector<double>& whole) {
  const size_t width = (whole.size() + kMostSamples - 1) / kMostSamples;
  const std::vector<double> series = width > 1 ? thin(whole, width) : whole;
  const size_t n = series.size();
  Trend trend;
  if (n < 4) return trend;

  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  double s = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const double rise = series[j] - series[i];
      slopes.push_back(rise / static_cast<double>(j - i));
      s += rise > 0 ? 1 : rise < 0 ? -1 : 0;
    }
  }
  const double pairs = static_cast<double>(slopes.size());
  const double slope = median(slopes);
  const double nd = static_cast<double>(n);
  const double independent = (nd * (nd - 1) * (2 * nd + 5) - tie_correction(series)) / 18;
  const double variance = independent * variance_inflation(series, slope);
  trend.tau = s / pairs;
  if (variance > 0 && s != 0)
    trend.p_value = normal_tail((s > 0 ? s - 1 : s + 1) / std::sqrt(variance));

  // Sen's interval: the slopes at the ranks that the spread of S reaches.
  std::sort(slopes.begin(), slopes.end());
  const double reach = 1.96 * std::sqrt(std::max(variance, 0.0));
  const auto at_rank = [&slopes](double rank) {
    const double last = static_cast<double>(slopes.size() - 1);
    return slopes[static_cast<size_t>(std::clamp(rank, 0.0, last))];
  };
  const double per_step = static_cast<double>(std::max<size_t>(width, 1));
  trend.slope = slope / per_step;
  trend.slope_low = at_rank((pairs - reach) / 2) / per_step;
  trend.slope_high = at_rank((pairs + reach) / 2 + 1) / per_step;
  return trend;
}

std::vector<bool> discoveries(const std::vector<double>& p_values, double rate) {
  const size_t n = p_values.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&p_values](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  double harmonic = 0;
  for (size_t i = 1; i <= n; ++i) harmonic += 1.0 / static_cast<double>(i);
  size_t rejected = 0;
  for (size_t i = 0; i < n; ++i) {
    const double bound = rate * static_cast<double>(i + 1) / (static_cast<double>(n) * harmonic);
    if (p_values[order[i]] <= bound) rejected = i + 1;
  }
  std::vector<bool> found(n, false);
  for (size_t i = 0; i < rejected; ++i) found[order[i]] = true;
  return found;
}

bool has_levelled_off(const std::vector<double>& series, double share) {
  const size_t n = series.size();
  const auto tail_samples = static_cast<size_t>(static_cast<double>(n) * share);
  if (tail_samples < 4) return false;
  const std::vector<double> tail(series.end() - static_cast<std::ptrdiff_t>(tail_samples),
                                 series.end());
  const std::vector<double> head(series.begin(),
                                 series.end() - static_cast<std::ptrdiff_t>(tail_samples));
  const double rise_of_head = measure_trend(head).slope;
  const Trend of_tail = measure_trend(tail);
  // Level: no rise that differs from 0, or one that is a small part of what it was before.
  return of_tail.p_value > 0.05 || of_tail.slope <= 0.05 * std::max(rise_of_head, 0.0);
}

}  // namespace vramtrack
