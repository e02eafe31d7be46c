// The replay of a run in which blocks were there only while they were used.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_ABSENCES_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_ABSENCES_H

#include <vector>

#include "diagnosis/waste/waste.h"

namespace vramtrack {

// A block that would not be there after the event `from` and before the event `to`.
struct Absence {
  size_t finding = 0;  // index
  int16_t device = -1;
  uint64_t bytes = 0;
  uint64_t from = 0;
  uint64_t to = 0;
};

// Gives the findings their bytes and peaks, and the report its peaks. What is live is counted as
// DeviceTotals::live() is, after each event.
void replay_without(const Recording& recording, const std::vector<Absence>& absences,
                    std::vector<WasteFinding>& findings, WasteReport& report);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_ABSENCES_H
