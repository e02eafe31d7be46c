// Whether one call site's live bytes, sampled at the ends of steps, grow and still do: several
// tests, each for courses that the others miss, and what speaks against them.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GROWTH_TEST_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GROWTH_TEST_H

#include <vector>

#include "diagnosis/leaks/trend.h"

namespace vramtrack {

// The trend of a series without its warm-up. Its p-value is corrected for the number of tests; its
// slope is that since the growth began.
Trend test_growth(const std::vector<double>& settled);

// The growth has ended (a cache that is full), or was one event (memory made once, at some step).
bool growth_is_over(const std::vector<double>& settled);

// The sample after which the series never returned to what it was there, give or take: where the
// growth began.
size_t start_of_growth(const std::vector<double>& series);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GROWTH_TEST_H
