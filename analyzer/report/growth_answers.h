// What follows from the laws of growth: the peak at another value, and the largest value that fits
// a card.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROWTH_ANSWERS_H
#define VRAMTRACK_ANALYZER_REPORT_GROWTH_ANSWERS_H

#include <optional>

#include "report/growth_table.h"

namespace vramtrack {

// The allocated peak at x. A peak is the highest of the phases' peaks, and each of these follows a
// law of its own even where another phase takes over; so it is predicted as the largest of their
// laws wherever these explain the peaks that were seen at least as well as a single law does.
// Empty with fewer than three different x, and where no law explains the points.
std::optional<GrowthPrediction> predict_peak(const GrowthTable& table, double x);

struct LargestFit {
  bool unlimited = false;  // does not grow
  double surely = 0;       // even if the allocator keeps as much cached as it did
  double at_most = 0;      // if it wastes nothing, and the law errs in our favour
  double farthest = 0;     // times the largest value that was seen
};

// Within `capacity` bytes less what was measured outside. Empty where there is no law.
std::optional<LargestFit> largest_fit(const GrowthTable& table, double capacity);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROWTH_ANSWERS_H
