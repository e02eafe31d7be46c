// The bounds that docs/leak-statistics.md promises, on jobs that its table does not contain.
#include "detection.h"

#include <catch2/catch.hpp>

TEST_CASE("leaks in synthetic jobs are found, and healthy sites left in peace") {
  const auto rows = vramtrack::test::measure_detection(1000, 12, 200);
  size_t growing = 0;
  size_t found = 0;
  size_t healthy = 0;
  size_t alarms = 0;
  size_t covered = 0;
  for (const auto& row : rows) {
    INFO(row.kind);
    CHECK(row.sites >= 30);
    (row.grows ? growing : healthy) += row.sites;
    (row.grows ? found : alarms) += row.reported;
    covered += row.covered;
    // Of 95 % intervals, over some 50 series: 85 % is three standard deviations below.
    if (row.grows) CHECK(row.covered * 100 >= row.reported * 85);
  }
  CHECK(growing == 600);
  CHECK(healthy == 600);
  CHECK(covered * 100 >= found * 93);
  CHECK(found >= growing * 9 / 10);
  CHECK(alarms * 100 < healthy);  // under 1 %
}
