// Growth laws against polynomials whose coefficients are known, with the rounding that allocators
// add.
#include "diagnosis/growth/growth_law.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace vramtrack {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::vector<GrowthPoint> sample(const std::vector<double>& xs, double a, double b, double c) {
  std::vector<GrowthPoint> points;
  for (const double x : xs) {
    const double bytes = a + b * x + c * x * x;
    points.push_back({x, std::ceil(bytes / 512) * 512});  // as the caching allocator rounds
  }
  return points;
}

TEST_CASE("a law is found with no more terms than it has") {
  const std::vector<double> lengths = {512, 1024, 2048, 4096};
  SECTION("constant") {
    const GrowthLaw law = fit_growth_law(sample(lengths, 700 * kMiB, 0, 0));
    CHECK(law.shape() == "constant");
    CHECK(law.constant == Approx(700 * kMiB));
    CHECK(law.tested);
  }
  SECTION("linear through the origin, as a KV cache") {
    const double per_token = 2 * 32 * 8 * 128 * 2;  // layers, kv heads, head size, bf16
    const GrowthLaw law = fit_growth_law(sample(lengths, 0, per_token, 0));
    CHECK(law.shape() == "linear");
    CHECK(law.terms == 1);
    CHECK(law.linear == Approx(per_token));
  }
  SECTION("quadratic, as eager attention") {
    const GrowthLaw law = fit_growth_law(sample(lengths, 0, 0, 4 * 12 * 3 * 2));
    CHECK(law.shape() == "quadratic");
    CHECK(law.terms == 1);
    CHECK(law.quadratic == Approx(288));
  }
  SECTION("all three") {
    const GrowthLaw law = fit_growth_law(sample(lengths, 1000 * kMiB, 500'000, 400));
    CHECK(law.terms == 3);
    CHECK(law.constant == Approx(1000 * kMiB).epsilon(0.01));
    CHECK(law.linear == Approx(500'000).epsilon(0.01));
    CHECK(law.quadratic == Approx(400).epsilon(0.01));
  }
}

TEST_CASE("coefficients are never negative") {
  // Falls and then rises: no law with non-negative terms fits it well, and the error says so.
  const GrowthLaw law = fit_growth_law({{1, 300}, {2, 100}, {4, 50}, {8, 400}});
  CHECK(law.constant >= 0);
  CHECK(law.linear >= 0);
  CHECK(law.quadratic >= 0);
  CHECK(law.worst_relative_error > 0.2);
}

TEST_CASE("the exponent comes with its range") {
  const std::vector<double> lengths = {512, 1024, 2048, 4096};
  const auto linear = fit_growth_exponent(sample(lengths, 90 * kMiB, 300'000, 0));
  REQUIRE(linear);
  CHECK(linear->value == Approx(1).margin(0.02));
  CHECK(linear->low <= 1.0 + 0.005);
  CHECK(linear->high >= 1.0 - 0.005);
  const auto quadratic = fit_growth_exponent(sample(lengths, 0, 0, 96));
  REQUIRE(quadratic);
  CHECK(quadratic->value == Approx(2).margin(0.02));
  const auto constant = fit_growth_exponent(sample(lengths, 90 * kMiB, 0, 0));
  REQUIRE(constant);
  CHECK(constant->value == 0);
}

TEST_CASE("two points give neither an exponent nor a prediction") {
  const std::vector<GrowthPoint> two = sample({512, 1024}, 0, 1000, 0);
  CHECK_FALSE(fit_growth_exponent(two));
  CHECK_FALSE(predict_growth(two, 4096));
}

TEST_CASE("three lengths predict a fourth, twice as long") {
  const std::vector<GrowthPoint> three = sample({512, 1024, 2048}, 2000 * kMiB, 700'000, 350);
  const auto prediction = predict_growth(three, 4096);
  REQUIRE(prediction);
  const double truth = 2000 * kMiB + 700'000.0 * 4096 + 350.0 * 4096 * 4096;
  CHECK(prediction->bytes == Approx(truth).epsilon(0.02));
  CHECK(prediction->low <= prediction->bytes);
  CHECK(prediction->high >= prediction->bytes);
}

TEST_CASE("the longest sequence that fits solves the law") {
  const GrowthLaw law{1000, 10, 2, 3, 0, 4, true};
  const auto longest = largest_that_fits(law, 1000 + 10 * 50 + 2 * 50 * 50);
  REQUIRE(longest);
  CHECK(*longest == Approx(50));
  CHECK_FALSE(largest_that_fits(GrowthLaw{1000, 0, 0, 1, 0, 4, true}, 2000));
  CHECK(largest_that_fits(law, 10).value() == 0);
}

TEST_CASE("lines cross where the growing one overtakes") {
  const GrowthLaw quadratic{0, 0, 2, 1, 0, 4, true};
  const GrowthLaw linear{0, 100, 0, 1, 0, 4, true};
  CHECK(crossing(quadratic, linear).value() == Approx(50));
  CHECK_FALSE(crossing(linear, GrowthLaw{-1, 100, 0, 1, 0, 4, true}));
}

}  // namespace
}  // namespace vramtrack
