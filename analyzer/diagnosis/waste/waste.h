// Memory that was held and not used: never touched, taken long before its first use, kept long
// after its last, or idle between two uses that are far apart.
//
// What counts as long: see WasteLimits. What a finding would save is replayed, not guessed: the
// same allocations and frees, with the block there only while it was used.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_WASTE_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_WASTE_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "replay/touches.h"

namespace vramtrack {

// A stretch without use is reported when it covers at least `steps` whole steps and
// `share_with_steps` of the run's launches; in a recording with fewer than `fewest_steps` steps,
// when it covers `share_without_steps` of them.
struct WasteLimits {
  uint64_t steps = 2;
  uint64_t fewest_steps = 4;
  double share_with_steps = 0.02;
  double share_without_steps = 0.10;
  uint64_t bytes = 1 << 20;  // of all blocks of a finding that are wasted at one time
};

enum class Waste : uint8_t { unused, early, late, idle };
std::string_view name_of(Waste kind);      // "unused"
std::string_view sentence_of(Waste kind);  // "never touched"

// Blocks of one call site that are wasted in the same way.
struct WasteFinding {
  Waste kind = Waste::unused;
  int16_t device = -1;
  std::string site;
  StackId stack = 0;  // of the largest block
  uint64_t blocks = 0;
  uint64_t bytes = 0;  // the most that is wasted at one time
  double byte_seconds = 0;
  Work longest_work = 0;       // of the longest stretch: launches,
  uint64_t longest_steps = 0;  // whole steps,
  double longest_seconds = 0;
  Touch before;               // the touch before that stretch; kernel 0: none
  Touch after;                // and the one after it
  uint64_t peak_without = 0;  // of the device's live bytes
};

struct WasteReport {
  WasteLimits limits;
  bool by_steps = false;
  uint64_t steps = 0;
  Work work = 0;                              // of the run
  uint64_t without_layout = 0;                // launches whose parameters could not be read
  std::map<int16_t, uint64_t> peaks;          // live bytes, by device
  std::map<int16_t, uint64_t> peaks_without;  // without all that was found
  std::vector<WasteFinding> findings;         // what saves most of the peak first
};

// Throws InputError where the recording does not say who touches what.
WasteReport find_waste(const Recording& recording, const WasteLimits& limits = {});

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_WASTE_WASTE_H
