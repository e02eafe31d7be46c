#include "diagnosis/oom/replayed_savings.h"

#include "replay/allocator_prediction.h"

namespace vramtrack {

std::vector<ReplayedSaving> replay_alternatives(const Recording& recording, int16_t device) {
  std::vector<ReplayedSaving> savings;
  const WhatIf what_if(recording, device);
  if (!what_if.possible() || !what_if.exact()) return savings;
  for (const AllocatorSettings& settings : what_if.alternatives()) {
    const Prediction prediction = what_if.predict(settings);
    savings.push_back(
        {settings.text(), static_cast<long double>(prediction.saving()), prediction.oom_avoided});
  }
  return savings;
}

}  // namespace vramtrack
