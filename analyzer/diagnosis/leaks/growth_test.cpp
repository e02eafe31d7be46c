#include "diagnosis/leaks/growth_test.h"

#include <algorithm>
#include <cmath>

#include "diagnosis/leaks/rate_interval.h"
#include "diagnosis/leaks/season.h"

namespace vramtrack {
namespace {

using Series = std::vector<double>;

Series since(const Series& series, size_t start) {
  return {series.begin() + static_cast<std::ptrdiff_t>(start), series.end()};
}

double rise_of(const Series& series) {
  return series.empty() ? 0 : series.back() - series.front();
}

// The chance that a series which wanders up and down alike rises as often as this one, for a series
// that gives back next to nothing of what it takes; 1 for every other. Mann-Kendall's test takes
// growth that accelerates, or that began late, for a long memory: what is left of it about a
// straight line is smooth. But memory that is only ever taken needs no such care.
double chance_of_accumulating(const std::vector<double>& series) {
  if (!only_takes(series)) return 1;
  int rises = 0;
  int falls = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    rises += series[i] > series[i - 1] ? 1 : 0;
    falls += series[i] < series[i - 1] ? 1 : 0;
  }
  double chance = 0;  // of `rises` heads or more among all tosses
  for (int heads = rises; heads <= rises + falls; ++heads)
    chance += std::exp(std::lgamma(rises + falls + 1) - std::lgamma(heads + 1) -
                       std::lgamma(rises + falls - heads + 1) - (rises + falls) * std::log(2.0));
  return std::min(chance, 1.0);
}

// Where a level turns into a line, by least squares over some places for the bend; 0 where a line
// from the start serves about as well.
size_t bend_of(const Series& series) {
  constexpr size_t kPlaces = 20;
  constexpr double kLast = 0.75;  // of the series: what is left must carry a test
  constexpr double kBetter = 0.8;
  const size_t n = series.size();
  size_t best = 0;
  double least = 0;
  for (size_t place = 0; place < kPlaces; ++place) {
    const auto bend = static_cast<size_t>(kLast * static_cast<double>(n * place) / kPlaces);
    double sx = 0;
    double sy = 0;
    double sxx = 0;
    double sxy = 0;
    double syy = 0;
    for (size_t i = 0; i < n; ++i) {
      const double x = i > bend ? static_cast<double>(i - bend) : 0;
      const double y = series[i] - series[0];
      sx += x;
      sy += y;
      sxx += x * x;
      sxy += x * y;
      syy += y * y;
    }
    const auto nd = static_cast<double>(n);
    const double xx = sxx - sx * sx / nd;
    const double xy = sxy - sx * sy / nd;
    const double residual = xx > 0 ? syy - sy * sy / nd - xy * xy / xx : syy;
    if (place == 0) {
      least = kBetter * residual;
    } else if (residual < least) {
      least = residual;
      best = bend;
    }
  }
  return best;
}

// Most of the rise came at once. The floor is what the series never went below again, so that
// spikes are no rises; its end is left out, where it is whatever the last samples were.
bool rises_once(const Series& series) {
  constexpr double kMost = 0.6;
  const size_t n = series.size();
  Series floor = series;
  for (size_t i = n - 1; i-- > 0;) floor[i] = std::min(floor[i], floor[i + 1]);
  const size_t end = n - 1 - std::max<size_t>(n / 20, 2);
  const size_t reach = std::max<size_t>(n / 60, 1);
  const double whole = floor[end] - floor[0];
  double largest = 0;
  for (size_t i = 0; i + reach <= end; ++i)
    largest = std::max(largest, floor[i + reach] - floor[i]);
  return largest > kMost * whole;
}

Trend trend_of(const Series& series) {
  Trend trend = measure_trend(series);
  allow_for_lumps(trend, series);
  return trend;
}

// Of a series that only ever takes, now and then: as many lumps came lately as before, as far as
// their number can tell, and they were no smaller. A cache that fills up gets them ever more
// rarely.
bool lumps_go_on(const Series& settled, size_t tail) {
  constexpr size_t kFewest = 3;
  constexpr double kSeldom = 0.1;
  if (!only_takes(settled)) return false;
  const size_t bound = settled.size() - tail;
  size_t before = 0;
  size_t lately = 0;
  for (size_t i = 1; i < settled.size(); ++i)
    if (settled[i] > settled[i - 1]) ++(i < bound ? before : lately);
  if (lately < kFewest) return false;
  const double share = static_cast<double>(tail) / static_cast<double>(settled.size());
  if (rise_of(since(settled, bound)) < share / 2 * rise_of(settled)) return false;
  const auto all = static_cast<double>(before + lately);
  double chance = 0;  // of so few of all of them in the tail, at an even rate
  for (size_t i = 0; i <= lately; ++i) {
    const auto k = static_cast<double>(i);
    chance += std::exp(std::lgamma(all + 1) - std::lgamma(k + 1) - std::lgamma(all - k + 1) +
                       k * std::log(share) + (all - k) * std::log(1 - share));
  }
  return chance > kSeldom;
}

void offer(Trend& best, Trend candidate, double tests) {
  candidate.p_value = std::min(1.0, candidate.p_value * tests);
  if (candidate.slope > 0 && candidate.p_value < best.p_value) best = candidate;
}

}  // namespace

size_t start_of_growth(const std::vector<double>& series) {
  const double end = series.back();
  size_t start = series.size() - 1;
  double floor_after = end;
  for (size_t i = series.size(); i-- > 0;) {
    floor_after = std::min(floor_after, series[i]);
    if (series[i] <= floor_after && series[i] < end) start = i;
    if (series[i] > floor_after + 0.1 * (end - floor_after) && floor_after < end) break;
  }
  return start;
}

// Three tests, and the surest decides: of the whole; of a series that only ever takes; of what
// follows a bend. Each p-value is multiplied by the number of tests, the last also by what the
// choice of a bend may have done for it.
Trend test_growth(const Series& settled) {
  constexpr double kTests = 3;
  constexpr double kBends = 10;
  if (settled.size() < 4) return {};
  const Series calm = without_seasons(settled, measure_trend(settled).slope);
  Trend best = trend_of(calm);
  best.p_value = std::min(1.0, kTests * best.p_value);
  const double chance = chance_of_accumulating(settled);
  if (chance < 1) {
    Trend taking = trend_of(since(settled, start_of_growth(settled)));
    if (taking.tau <= 0) taking = trend_of(settled);
    taking.p_value = chance;
    offer(best, taking, kTests);
  }
  const size_t bend = bend_of(calm);
  if (bend != 0) offer(best, trend_of(since(calm, bend)), kTests * kBends);
  return best;
}

bool growth_is_over(const Series& settled) {
  constexpr double kTail = 0.4;
  if (settled.size() < 8) return false;
  if (rises_once(settled)) return true;
  const Series calm = without_seasons(settled, measure_trend(settled).slope);
  if (!has_levelled_off(calm)) return false;
  const Series tail = since(
      settled, static_cast<size_t>(std::lround(static_cast<double>(settled.size()) * (1 - kTail))));
  if (lumps_go_on(settled, tail.size())) return false;
  if (tail.size() < 4 || chance_of_accumulating(tail) > 0.01) return true;
  const double whole = rise_of(settled) / static_cast<double>(settled.size() - 1);
  return rise_of(tail) / static_cast<double>(tail.size() - 1) < 0.1 * whole;
}

}  // namespace vramtrack
