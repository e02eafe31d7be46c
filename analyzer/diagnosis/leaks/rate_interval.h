// How far the rate of a growing series may be from the truth when the growth is itself a matter of
// chance.
//
// Sen's interval takes a series for a line under noise: the noise does not add up, and the interval
// closes quickly. Growth in lumps (a session kept now and then, a cache entry of any size) does add
// up: what a draw of it did by chance stays in all that follows, and the slopes of the pairs agree
// with each other far better than with the truth.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_RATE_INTERVAL_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_RATE_INTERVAL_H

#include <vector>

#include "diagnosis/leaks/trend.h"

namespace vramtrack {

// Whether a series gives back next to nothing of what it takes.
bool only_takes(const std::vector<double>& series);

// Corrects the trend's 95 % interval where the series, the one that it was measured on,
// accumulates by chance.
void allow_for_lumps(Trend& trend, const std::vector<double>& series);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_RATE_INTERVAL_H
