#include "diagnosis/leaks/season.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace vramtrack {
namespace {

constexpr double kFewestCycles = 5;
constexpr double kFinest = 0.25;  // of a cycle, between two frequencies that are tried
constexpr double kLeastShare = 0.3;
constexpr int kMostSeasons = 4;  // one, and its overtones

struct Wave {
  double cosine = 0;
  double sine = 0;
  double share = 0;  // of the variance
};

// The wave of so many cycles in the series, by least squares; over whole cycles sines and cosines
// do not disturb each other, and nearly so over a few.
Wave fit(const std::vector<double>& values, double angle, double variance) {
  double cc = 0;
  double ss = 0;
  double cs = 0;
  double vc = 0;
  double vs = 0;
  const double turn_c = std::cos(angle);
  const double turn_s = std::sin(angle);
  double c = 1;
  double s = 0;
  for (const double value : values) {
    cc += c * c;
    ss += s * s;
    cs += c * s;
    vc += value * c;
    vs += value * s;
    const double turned = c * turn_c - s * turn_s;
    s = s * turn_c + c * turn_s;
    c = turned;
  }
  const double determinant = cc * ss - cs * cs;
  if (determinant < 1e-9 * cc * ss) return {};
  Wave wave{.cosine = (vc * ss - vs * cs) / determinant, .sine = (vs * cc - vc * cs) / determinant};
  wave.share = (wave.cosine * vc + wave.sine * vs) / variance;
  return wave;
}

}  // namespace

std::vector<double> without_seasons(const std::vector<double>& series, double slope) {
  const size_t n = series.size();
  const auto nd = static_cast<double>(n);
  std::vector<double> rest(n);
  for (size_t i = 0; i < n; ++i) rest[i] = series[i] - slope * static_cast<double>(i);
  const double mean = std::accumulate(rest.begin(), rest.end(), 0.0) / nd;
  double whole = 0;
  for (double& value : rest) {
    value -= mean;
    whole += value * value;
  }
  std::vector<double> result = series;
  double left = whole;
  for (int season = 0; season < kMostSeasons && left > 1e-12 * whole; ++season) {
    Wave best;
    double best_angle = 0;
    for (size_t k = 0;; ++k) {
      const double cycles = kFewestCycles + kFinest * static_cast<double>(k);
      if (cycles > nd / 3) break;
      const double angle = 2 * std::numbers::pi * cycles / nd;
      const Wave wave = fit(rest, angle, left);
      if (wave.share <= best.share) continue;
      best = wave;
      best_angle = angle;
    }
    if (best.share < kLeastShare) break;
    for (size_t i = 0; i < n; ++i) {
      const double at = best_angle * static_cast<double>(i);
      const double value = best.cosine * std::cos(at) + best.sine * std::sin(at);
      rest[i] -= value;
      result[i] -= value;
    }
    left *= 1 - best.share;
  }
  return result;
}

}  // namespace vramtrack
