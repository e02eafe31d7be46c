// How memory grows with one variable: sequence length, batch, layers.
//
//   y = a + b x + c x²      a, b, c >= 0, and as few of them as explain the points
//   y = a + b x^p           the exponent p, with the range that fits about as well
//
// Memory is nearly deterministic: what scatters is rounding (512 B blocks, 2 MiB segments), so
// errors are relative and a term stays out unless it lowers the worst error where it matters.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_GROWTH_GROWTH_LAW_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_GROWTH_GROWTH_LAW_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vramtrack {

struct GrowthPoint {
  double x = 0;      // > 0
  double bytes = 0;  // >= 0
};

struct GrowthLaw {
  double constant = 0;              // bytes
  double linear = 0;                // bytes per unit of x
  double quadratic = 0;             // bytes per unit of x²
  int terms = 0;                    // how many of the three are in use
  double worst_relative_error = 0;  // over the points, against max(y, 1 % of the largest y)
  size_t distinct = 0;              // values of x among the points
  // As many terms as values of x: the law passes through the points and nothing tests it.
  bool tested = false;

  [[nodiscard]] double at(double x) const { return constant + (linear + quadratic * x) * x; }
  // Whether there is a law at all: tested, and off by no more than 5 % anywhere.
  [[nodiscard]] bool explains() const { return tested && worst_relative_error <= 0.05; }
  // Whether to extrapolate by it: a law, or three points that took three terms, untested.
  [[nodiscard]] bool usable() const { return explains() || (!tested && distinct >= 3); }
  // "constant", "linear", "quadratic", "linear + quadratic" ...: the shape without its constant
  // part.
  [[nodiscard]] std::string shape() const;
};

struct GrowthExponent {
  double value = 0;  // 0: does not grow
  double low = 0;    // the range of exponents that explain the points about as well
  double high = 0;
};

struct GrowthPrediction {
  double bytes = 0;
  // From the residuals, and from leaving out one point at a time while the law keeps its terms; of
  // an untested law also from the best one with a term less.
  double low = 0;
  double high = 0;
  bool tested = false;
};

// Needs at least one point; repeated x are allowed.
GrowthLaw fit_growth_law(const std::vector<GrowthPoint>& points);

// Empty with fewer than three distinct x: two points fit any exponent.
std::optional<GrowthExponent> fit_growth_exponent(const std::vector<GrowthPoint>& points);

// Empty with fewer than three distinct x: two points are never extrapolated silently.
std::optional<GrowthPrediction> predict_growth(const std::vector<GrowthPoint>& points, double x);

// The largest x with at(x) <= capacity; empty where the law never reaches it, 0 where the constant
// part alone exceeds it.
std::optional<double> largest_that_fits(const GrowthLaw& law, double capacity);

// The smallest x > 0 at which `growing` overtakes `other`; empty where the lines do not cross.
std::optional<double> crossing(const GrowthLaw& growing, const GrowthLaw& other);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_GROWTH_GROWTH_LAW_H
