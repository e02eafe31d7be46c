// Is a recording whole, and do its numbers agree? What `vramtrack check` prints.
#ifndef VRAMTRACK_ANALYZER_REPORT_CHECK_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_CHECK_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

struct CheckReport {
  RecordingInfo info;
  Timeline timeline;
  uint64_t stacks = 0;
  uint64_t out_of_order = 0;          // events whose sequence number does not grow
  uint64_t unbalanced = 0;            // instants at which a device's sums did not add up
  uint64_t stacks_undefined = 0;      // events whose stack the recording never defines
  uint64_t strings_undefined = 0;     // the same of texts
  std::vector<std::string> problems;  // in words; empty: nothing is wrong

  [[nodiscard]] bool whole() const { return problems.empty(); }
};

// Two passes: one to replay, one to look at each event's own sense.
CheckReport check(const Recording& recording);

std::string text_check(const CheckReport& report);
nlohmann::ordered_json json_check(const CheckReport& report);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_CHECK_REPORT_H
