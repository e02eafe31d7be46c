// The instant of most allocated memory within each phase of the job, all steps together: the end of
// a forward pass, the middle of a backward pass, an optimizer's step. The peak of the whole is one
// of them, but which one changes with length or batch; these are comparable between runs.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H

#include <vector>

#include "attribution/stack_traits.h"
#include "replay/timeline.h"

namespace vramtrack {

struct PhasePeak {
  Activity activity = Activity::unknown;
  Moment moment;  // named "forward-peak" ...
  uint64_t allocated = 0;
};

// One pass. Phases in which nothing was allocated are left out; recomputation counts as backward.
std::vector<PhasePeak> find_phase_peaks(const Recording& recording, int16_t device,
                                        const StackTraitsCache& traits);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H
