// detection_table [JOBS [STEPS]]: the table of docs/leak-statistics.md.
#include <fmt/format.h>

#include <cstdlib>

#include "detection.h"

int main(int argc, char** argv) {
  using vramtrack::test::DetectionRow;
  const unsigned jobs = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20;
  const size_t steps = argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 200;
  const auto rows = vramtrack::test::measure_detection(1, jobs, steps);
  DetectionRow growing{.kind = "all that grow", .grows = true};
  DetectionRow healthy{.kind = "all healthy"};
  fmt::print(
      "| kind | series | reported | rate within its interval | half of it | mean error of the rate "
      "|\n");
  fmt::print("| --- | --- | --- | --- | --- | --- |\n");
  const auto print = [](const DetectionRow& row) {
    const auto share = [](double part, size_t whole) {
      return whole == 0 ? std::string("-")
                        : fmt::format("{:.1f} %", 100 * part / static_cast<double>(whole));
    };
    const auto of = [](size_t n) { return static_cast<double>(n); };
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", row.kind, row.sites,
               share(of(row.reported), row.sites),
               row.grows ? share(of(row.covered), row.reported) : "-",
               row.grows ? share(row.half_width, row.reported) : "-",
               row.grows ? share(row.relative_error, row.reported) : "-");
  };
  bool told_healthy = false;
  for (const DetectionRow& row : rows) {
    if (!row.grows && !told_healthy) {
      print(growing);
      told_healthy = true;
    }
    DetectionRow& all = row.grows ? growing : healthy;
    all.sites += row.sites;
    all.reported += row.reported;
    all.covered += row.covered;
    all.half_width += row.half_width;
    all.relative_error += row.relative_error;
    print(row);
  }
  print(healthy);
  return 0;
}
