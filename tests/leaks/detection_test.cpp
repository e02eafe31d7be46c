// The bounds that docs/leak-statistics.md promises, on jobs that its table does not contain.
#include "detection.h"

#include <catch2/catch.hpp>

TEST_CASE("leaks in synthetic jobs are found, and healthy sites left in peace") {
  const auto rows = vramtrack::test::measure_detection(1000, 6, 200);
  size_t growing = 0;
  size_t found = 0;
  size_t healthy = 0;
  size_t alarms = 0;
  for (const auto& row : rows) {
    INFO(row.kind);
    CHECK(row.sites >= 30);
    (row.grows ? growing : healthy) += row.sites;
    (row.grows ? found : alarms) += row.reported;
  }
  CHECK(growing == 300);
  CHECK(healthy == 300);
  CHECK(found >= growing * 9 / 10);
  CHECK(alarms * 100 < healthy);  // under 1 %
}
