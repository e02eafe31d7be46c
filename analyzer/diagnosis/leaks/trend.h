// Is a series growing, how fast, and is that more than chance? The statistics behind `leaks`.
//
// Memory series are neither normal nor independent: they jump, repeat and carry outliers. So the
// slope is Theil-Sen's (the median of all pairwise slopes, indifferent to a third of outliers), and
// the test is Mann-Kendall's, its variance corrected for the autocorrelation of the ranks; over
// many call stacks the false-discovery rate is controlled after Benjamini and Yekutieli (2001).
//
// Why not the sharper procedure of Benjamini and Hochberg: it needs p-values that are independent
// or depend on each other positively. Call stacks do neither: those of one model swing together
// with its batches, and what one line keeps another one may have evicted. Yekutieli's bound, lower
// by the harmonic sum (5 for 100 stacks), holds under any dependence; a leak that goes on passes it
// a few steps later.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_TREND_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_TREND_H

#include <cstddef>
#include <vector>

namespace vramtrack {

struct Trend {
  double slope = 0;      // units of y per step of the series
  double slope_low = 0;  // 95 % confidence interval
  double slope_high = 0;
  double p_value = 1;  // two-sided: probability of a trend this strong without one
  double tau = 0;      // Kendall's: -1 falls always, 1 rises always
};

// `series` is sampled at equal steps. Longer series than a few hundred samples are thinned by
// taking the median of equal bins, since all pairs are looked at. Fewer than 4 samples: no trend.
Trend measure_trend(const std::vector<double>& series);

// Which of the hypotheses are rejected at this false-discovery rate.
std::vector<bool> discoveries(const std::vector<double>& p_values, double rate);

// Whether a growing series has stopped growing: the last `share` of it has no rise worth speaking
// of against the whole (a cache that is full, a warm-up that is over).
bool has_levelled_off(const std::vector<double>& series, double share = 0.4);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_TREND_H
