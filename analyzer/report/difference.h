// What changed between two recordings of one program: allocated, cached and outside apart, then by
// category, module and the user's line. The same line growing is a difference, and a line that
// merely moved is not: lines are matched by file, function and their order in it.
#ifndef VRAMTRACK_ANALYZER_REPORT_DIFFERENCE_H
#define VRAMTRACK_ANALYZER_REPORT_DIFFERENCE_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/report_data.h"

namespace vramtrack {

struct Change {
  std::string name;        // as the second recording has it; as the first where it is gone
  std::string moved_from;  // its name in the first, where the line moved
  std::string row;         // sites: the category that most of it belongs to
  Amount before;
  Amount after;

  [[nodiscard]] int64_t bytes() const {
    return static_cast<int64_t>(after.bytes) - static_cast<int64_t>(before.bytes);
  }
};

struct DeviceDifference {
  int16_t device = 0;
  Moment before_moment;
  Moment after_moment;
  std::vector<Change> totals;      // in use, allocated, cached, outside, reserved high-water mark
  std::vector<Change> categories;  // rows with sub-rows apart: largest change first
  std::vector<Change> modules;
  std::vector<Change> sites;
  int64_t peak_bytes = 0;  // change of the allocated bytes at the moments compared
};

struct Difference {
  std::string before;  // paths
  std::string after;
  bool simulated_before = false;
  bool simulated_after = false;
  std::vector<DeviceDifference> devices;
  std::vector<std::string> notes;
};

// Both at their own moment `at` (empty: OOM, else the allocated peak).
Difference compare(const Recording& before, const Recording& after, const std::string& at);

// Changes of sites. Exposed for tests.
std::vector<Change> match_sites(const std::vector<CallSite>& before,
                                const std::vector<CallSite>& after);

std::string difference_text(const Difference& difference, size_t top);
nlohmann::ordered_json difference_json(const Difference& difference);  // vramtrack.diff/1

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_DIFFERENCE_H
