#include "report/growth_answers.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace vramtrack {
namespace {

std::vector<const GrowthRow*> lawful_phases(const GrowthTable& table) {
  std::vector<const GrowthRow*> phases;
  for (const GrowthRow& row : table.phases)
    if (row.absent_at.empty() && row.law.usable()) phases.push_back(&row);
  return phases;
}

double largest_at(const std::vector<const GrowthRow*>& phases, double x) {
  double most = 0;
  for (const GrowthRow* row : phases) most = std::max(most, row->law.at(x));
  return most;
}

// Worst relative error over the peaks that were seen.
double error_of(const std::vector<const GrowthRow*>& phases, const GrowthRow& peak) {
  double worst = 0;
  for (const GrowthPoint& point : peak.points)
    worst = std::max(
        worst, std::fabs(largest_at(phases, point.x) - point.bytes) / std::max(point.bytes, 1.0));
  return worst;
}

std::optional<GrowthPrediction> by_phases(const std::vector<const GrowthRow*>& phases, double x) {
  std::optional<GrowthPrediction> highest;
  for (const GrowthRow* row : phases) {
    const auto one = predict_growth(row->points, x);
    if (!one) continue;
    if (!highest) highest = GrowthPrediction{};
    if (one->bytes > highest->bytes) highest->tested = one->tested;
    highest->bytes = std::max(highest->bytes, one->bytes);
    highest->low = std::max(highest->low, one->low);
    highest->high = std::max(highest->high, one->high);
  }
  return highest;
}

// The largest x at which a rising function is still within `limit`.
double largest_within(const std::function<double(double)>& bytes, double limit, double most) {
  double low = 0;
  double high = most;
  if (bytes(high) <= limit) return high;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (bytes(middle) <= limit ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::optional<GrowthPrediction> predict_peak(const GrowthTable& table, double x) {
  const auto alone = predict_growth(table.peak.points, x);
  if (!alone) return std::nullopt;
  const auto phases = lawful_phases(table);
  if (!phases.empty() && error_of(phases, table.peak) <= table.peak.law.worst_relative_error + 1e-6)
    if (const auto together = by_phases(phases, x)) return together;
  if (!table.peak.law.usable()) return std::nullopt;
  return alone;
}

std::optional<LargestFit> largest_fit(const GrowthTable& table, double capacity) {
  if (!predict_peak(table, table.xs.back()) || table.in_use.law.distinct < 3) return std::nullopt;
  const double room = std::max(capacity - table.outside, 0.0);
  const double farthest = table.xs.back() * 1e6;
  const auto allocated = [&table](double x) { return predict_peak(table, x)->low; };
  const auto reserved = [&table](double x) {
    const GrowthLaw& law = table.in_use.law;
    return std::max(law.at(x) * (1 + law.worst_relative_error), predict_peak(table, x)->high);
  };
  LargestFit fit;
  fit.at_most = largest_within(allocated, room, farthest);
  fit.surely = largest_within(reserved, room, farthest);
  // What was seen to fit, fits.
  for (const GrowthPoint& point : table.in_use.points)
    if (point.bytes <= room) fit.surely = std::max(fit.surely, point.x);
  fit.at_most = std::max(fit.at_most, fit.surely);
  fit.unlimited = fit.surely >= farthest;
  fit.farthest = fit.at_most / table.xs.back();
  return fit;
}

}  // namespace vramtrack
