#include "attribution/phase_peaks.h"

#include <array>

#include "replay/state.h"

namespace vramtrack {

std::vector<PhasePeak> find_phase_peaks(const Recording& recording, int16_t device,
                                        const StackTraitsCache& traits) {
  constexpr size_t kActivities = static_cast<size_t>(Activity::communication) + 1;
  std::array<PhasePeak, kActivities> peaks{};
  Activity current = Activity::unknown;
  MemoryState state;
  recording.for_each([&](const Event& event) {
    state.apply(event);
    if (event.kind != EventKind::block_alloc || event.device != device ||
        (event.flags & kEventReconstructed) != 0)
      return true;
    Activity activity = traits.of(event.stack).activity();
    if (activity == Activity::recomputation) activity = Activity::backward;
    if (activity != Activity::unknown && activity != Activity::communication) current = activity;
    PhasePeak& peak = peaks[static_cast<size_t>(current)];
    const uint64_t allocated = state.totals(device).allocated;
    if (allocated <= peak.allocated) return true;
    peak.activity = current;
    peak.allocated = allocated;
    peak.moment.sequence = event.sequence;
    peak.moment.time_ns = event.time_ns;
    peak.moment.step = state.step();
    return true;
  });
  std::vector<PhasePeak> found;
  for (PhasePeak& peak : peaks) {
    if (peak.allocated == 0) continue;
    peak.moment.device = device;
    peak.moment.name = std::string(name_of(peak.activity)) + "-peak";
    found.push_back(peak);
  }
  return found;
}

}  // namespace vramtrack
