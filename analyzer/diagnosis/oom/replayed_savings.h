// What other settings of the caching allocator would have saved, by replaying its requests.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_REPLAYED_SAVINGS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_REPLAYED_SAVINGS_H

#include <vector>

#include "diagnosis/oom/advice.h"
#include "trace/recording.h"

namespace vramtrack {

// Empty where the replay is impossible or does not reproduce what was recorded: then nothing may be
// claimed of it.
std::vector<ReplayedSaving> replay_alternatives(const Recording& recording, int16_t device);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_REPLAYED_SAVINGS_H
