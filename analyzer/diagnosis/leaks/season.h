// Oscillations in a series: an epoch, an evaluation every so many steps, a schedule of lengths.
//
// A test for growth that allows for the memory of a series takes an oscillation for a long memory,
// and then sees nothing in front of it. So what returns is taken out first.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_SEASON_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_SEASON_H

#include <vector>

namespace vramtrack {

// The series without its strongest oscillations. Only those that it went through at least five
// times, and that make up a good part of how it varies about a line of this slope: else nothing is
// taken out, so that mere chance is not mistaken for a season.
std::vector<double> without_seasons(const std::vector<double>& series, double slope);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_SEASON_H
