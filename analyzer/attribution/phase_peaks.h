// The instant of most allocated memory within each part of the job's work, all steps together: in
// attention, in the loss and elsewhere in the forward pass, the same of the backward pass, in the
// optimizer's step. The peak of the whole is one of them, but which one changes with length or
// batch; these are comparable between runs.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H

#include <vector>

#include "attribution/stack_traits.h"
#include "replay/timeline.h"

namespace vramtrack {

struct PhasePeak {
  Activity activity = Activity::unknown;
  Moment moment;  // named "forward-peak", "backward, attention-peak" ...
  uint64_t allocated = 0;
};

// One pass. Parts in which nothing was allocated are left out; recomputation counts as backward.
std::vector<PhasePeak> find_phase_peaks(const Recording& recording, int16_t device,
                                        const StackTraitsCache& traits);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_PHASE_PEAKS_H
