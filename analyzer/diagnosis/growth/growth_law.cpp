#include "diagnosis/growth/growth_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace vramtrack {
namespace {

// A law that is off by no more than this everywhere explains the points; below it lies rounding.
constexpr double kExplained = 0.005;
// A further term has to lower the worst error by this factor to be let in beyond that.
constexpr double kWorthATerm = 0.5;

using Coefficients = std::array<double, 3>;

double largest(const std::vector<GrowthPoint>& points) {
  double most = 0;
  for (const GrowthPoint& point : points) most = std::max(most, point.bytes);
  return most;
}

// Relative errors would let the smallest points rule; a floor of 1 % of the largest keeps rounding
// noise in tiny values from deciding.
double weight(const GrowthPoint& point, double most) {
  return 1.0 / std::max({point.bytes, 0.01 * most, 1.0});
}

// Solves the weighted normal equations for the columns in `active` by Gaussian elimination with
// pivoting. False where they are singular (too few distinct x).
bool solve(const std::vector<GrowthPoint>& points, unsigned active, double scale,
           Coefficients& out) {
  std::array<std::array<double, 4>, 3> m{};
  std::array<int, 3> column{};
  int n = 0;
  for (int i = 0; i < 3; ++i)
    if (active >> i & 1U) column[static_cast<size_t>(n++)] = i;
  const double most = std::max(largest(points), 1.0);
  for (const GrowthPoint& point : points) {
    const double x = point.x / scale;
    const double w =
        most * weight(point, most);  // near 1: the pivots below are compared with 1e-12
    const std::array<double, 3> basis = {w, w * x, w * x * x};
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < n; ++c)
        m[static_cast<size_t>(r)][static_cast<size_t>(c)] +=
            basis[static_cast<size_t>(column[static_cast<size_t>(r)])] *
            basis[static_cast<size_t>(column[static_cast<size_t>(c)])];
      m[static_cast<size_t>(r)][3] +=
          basis[static_cast<size_t>(column[static_cast<size_t>(r)])] * w * point.bytes / most;
    }
  }
  for (size_t p = 0; p < static_cast<size_t>(n); ++p) {
    size_t best = p;
    for (size_t r = p + 1; r < static_cast<size_t>(n); ++r)
      if (std::fabs(m[r][p]) > std::fabs(m[best][p])) best = r;
    std::swap(m[p], m[best]);
    if (std::fabs(m[p][p]) < 1e-12) return false;
    for (size_t r = 0; r < static_cast<size_t>(n); ++r) {
      if (r == p) continue;
      const double factor = m[r][p] / m[p][p];
      for (size_t c = p; c < static_cast<size_t>(n); ++c) m[r][c] -= factor * m[p][c];
      m[r][3] -= factor * m[p][3];
    }
  }
  out = {0, 0, 0};
  for (size_t p = 0; p < static_cast<size_t>(n); ++p) {
    const auto term = static_cast<size_t>(column[p]);
    out[term] = most * m[p][3] / m[p][p] / std::pow(scale, static_cast<double>(term));
  }
  return true;
}

GrowthLaw law_of(const Coefficients& c, int terms, const std::vector<GrowthPoint>& points) {
  GrowthLaw law{c[0], c[1], c[2], terms, 0, 0, false};
  const double most = largest(points);
  for (const GrowthPoint& point : points)
    law.worst_relative_error = std::max(
        law.worst_relative_error, std::fabs(law.at(point.x) - point.bytes) * weight(point, most));
  return law;
}

// The best law with exactly `terms` non-negative terms. With three candidates at most, trying all
// subsets is simpler than an active-set method and gives the same answer.
std::optional<GrowthLaw> best_with(int terms, const std::vector<GrowthPoint>& points) {
  double scale = 1;
  for (const GrowthPoint& point : points) scale = std::max(scale, point.x);
  std::optional<GrowthLaw> best;
  for (unsigned active = 1; active < 8; ++active) {
    if (__builtin_popcount(active) != terms) continue;
    Coefficients c{};
    if (!solve(points, active, scale, c)) continue;
    if (std::any_of(c.begin(), c.end(), [](double v) { return v < 0; })) continue;
    const GrowthLaw law = law_of(c, terms, points);
    if (!best || law.worst_relative_error < best->worst_relative_error) best = law;
  }
  return best;
}

// The same terms fitted to other points; empty where these are too few for them.
std::optional<GrowthLaw> with_terms_of(const GrowthLaw& law,
                                       const std::vector<GrowthPoint>& points) {
  const unsigned active =
      (law.constant > 0 ? 1U : 0U) | (law.linear > 0 ? 2U : 0U) | (law.quadratic > 0 ? 4U : 0U);
  double scale = 1;
  for (const GrowthPoint& point : points) scale = std::max(scale, point.x);
  Coefficients c{};
  if (active == 0 || !solve(points, active, scale, c)) return std::nullopt;
  if (std::any_of(c.begin(), c.end(), [](double v) { return v < 0; })) return std::nullopt;
  return law_of(c, law.terms, points);
}

size_t distinct_x(const std::vector<GrowthPoint>& points) {
  std::set<double> values;
  for (const GrowthPoint& point : points) values.insert(point.x);
  return values.size();
}

// Worst relative error of the best y = a + b x^p, a and b non-negative, for a given p.
double error_of_exponent(const std::vector<GrowthPoint>& points, double p) {
  std::vector<GrowthPoint> bent = points;
  for (GrowthPoint& point : bent) point.x = std::pow(point.x, p);
  double best = std::numeric_limits<double>::infinity();
  for (const unsigned active : {2U, 3U}) {
    double scale = 1;
    for (const GrowthPoint& point : bent) scale = std::max(scale, point.x);
    Coefficients c{};
    if (!solve(bent, active, scale, c) || c[0] < 0 || c[1] < 0) continue;
    best = std::min(best, law_of(c, 2, bent).worst_relative_error);
  }
  return best;
}

}  // namespace

std::string GrowthLaw::shape() const {
  if (linear == 0 && quadratic == 0) return "constant";
  if (quadratic == 0) return "linear";
  return linear == 0 ? "quadratic" : "linear + quadratic";
}

GrowthLaw fit_growth_law(const std::vector<GrowthPoint>& points) {
  const size_t distinct = distinct_x(points);
  std::optional<GrowthLaw> chosen;
  for (int terms = 1; terms <= 3 && static_cast<size_t>(terms) <= distinct; ++terms) {
    if (chosen && chosen->worst_relative_error <= kExplained) break;
    const std::optional<GrowthLaw> law = best_with(terms, points);
    if (law && (!chosen || law->worst_relative_error < kWorthATerm * chosen->worst_relative_error))
      chosen = law;
  }
  GrowthLaw law = chosen.value_or(GrowthLaw{});
  law.distinct = distinct;
  law.tested = distinct > static_cast<size_t>(law.terms);
  return law;
}

std::optional<GrowthExponent> fit_growth_exponent(const std::vector<GrowthPoint>& points) {
  if (distinct_x(points) < 3) return std::nullopt;
  const GrowthLaw law = fit_growth_law(points);
  if (law.linear == 0 && law.quadratic == 0) return GrowthExponent{0, 0, 0};

  constexpr double kStep = 0.005;
  constexpr int kSteps = 800;  // up to 4
  double best = std::numeric_limits<double>::infinity();
  GrowthExponent exponent;
  for (int step = 1; step <= kSteps; ++step) {
    const double p = kStep * step;
    const double error = error_of_exponent(points, p);
    if (error < best) {
      best = error;
      exponent.value = p;
    }
  }
  // What fits within the rounding, or within half as much again as the best, cannot be told apart.
  const double allowed = std::max(best * 1.5, 1e-4);
  exponent.low = exponent.high = exponent.value;
  for (int step = 1; step <= kSteps; ++step) {
    const double p = kStep * step;
    if (error_of_exponent(points, p) > allowed) continue;
    exponent.low = std::min(exponent.low, p);
    exponent.high = std::max(exponent.high, p);
  }
  return exponent;
}

std::optional<GrowthPrediction> predict_growth(const std::vector<GrowthPoint>& points, double x) {
  if (distinct_x(points) < 3) return std::nullopt;
  const GrowthLaw law = fit_growth_law(points);
  GrowthPrediction prediction{law.at(x), law.at(x), law.at(x), law.tested};
  const auto widen = [&prediction](double bytes) {
    prediction.low = std::min(prediction.low, bytes);
    prediction.high = std::max(prediction.high, bytes);
  };
  widen(prediction.bytes * (1 - law.worst_relative_error));
  widen(prediction.bytes * (1 + law.worst_relative_error));
  if (!law.tested) {
    if (const auto simpler = best_with(law.terms - 1, points)) widen(simpler->at(x));
    return prediction;
  }
  for (size_t left_out = 0; left_out < points.size(); ++left_out) {
    std::vector<GrowthPoint> rest = points;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
    const std::optional<GrowthLaw> other = with_terms_of(law, rest);
    if (other) widen(other->at(x));
  }
  return prediction;
}

std::optional<double> largest_that_fits(const GrowthLaw& law, double capacity) {
  const double room = capacity - law.constant;
  if (room < 0) return 0;
  if (law.quadratic > 0) {
    const double root = std::sqrt(law.linear * law.linear + 4 * law.quadratic * room);
    // The other form of the quadratic formula: no cancellation where the linear part dominates.
    return 2 * room / (law.linear + root);
  }
  if (law.linear > 0) return room / law.linear;
  return std::nullopt;
}

std::optional<double> crossing(const GrowthLaw& growing, const GrowthLaw& other) {
  const double c = growing.quadratic - other.quadratic;
  const double b = growing.linear - other.linear;
  const double a = growing.constant - other.constant;
  std::array<double, 2> roots{};
  size_t count = 0;
  if (c == 0) {
    if (b != 0) roots[count++] = -a / b;
  } else {
    const double discriminant = b * b - 4 * c * a;
    if (discriminant < 0) return std::nullopt;
    const double root = std::sqrt(discriminant);
    roots[count++] = (-b - root) / (2 * c);
    roots[count++] = (-b + root) / (2 * c);
  }
  std::optional<double> first;
  for (size_t i = 0; i < count; ++i) {
    const double x = roots[i];
    const bool overtakes = x > 0 && b + 2 * c * x > 0;
    if (overtakes && (!first || x < *first)) first = x;
  }
  return first;
}

}  // namespace vramtrack
