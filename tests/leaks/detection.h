// How often leaks are found and healthy sites accused, kind by kind, over randomised jobs.
#ifndef VRAMTRACK_TESTS_LEAKS_DETECTION_H
#define VRAMTRACK_TESTS_LEAKS_DETECTION_H

#include <string>
#include <vector>

namespace vramtrack::test {

struct DetectionRow {
  std::string kind;
  bool grows = false;
  size_t sites = 0;
  size_t reported = 0;
  size_t covered = 0;         // of those that grow: the true rate lies in the interval
  double half_width = 0;      // sum over those reported of half the interval / truth
  double relative_error = 0;  // sum over those reported of |rate - truth| / truth
};

// Jobs with 50 growing and 50 healthy sites each, in the order of the kinds.
std::vector<DetectionRow> measure_detection(unsigned first_seed, unsigned jobs, size_t steps);

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_LEAKS_DETECTION_H
