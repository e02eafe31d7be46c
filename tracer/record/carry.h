// What a ring must know of the time that it has overwritten: keeps the table of what is live up to
// date with each event, and the greatest values so far.
//
// Three kinds of events: those whose effect ends (blocks, the driver's allocations, phases ...) are
// in the table while it lasts. Rare ones whose effect is intricate (VMM, contexts, modules, pools)
// are kept in the file for good. The rest tells of an instant and is forgotten.
#ifndef VRAMTRACK_TRACER_RECORD_CARRY_H
#define VRAMTRACK_TRACER_RECORD_CARRY_H

#include "record/live_table.h"

namespace vramtrack {

LiveTable& live_table();

// Takes in an event that has its sequence number, time and thread. `kernel`: the name of the one
// that it launches, where its own text does not say.
void carry(const Event& event, uint32_t kernel);
// Whether a copy of the event must be kept for good (kept_event).
bool must_be_kept(EventKind kind);
CarriedEvent carried(const Event& event);

// Calls write(const CarriedEvent&) for each maximum so far.
template <class Write>
void for_each_ring_peak(Write&& write);

void reset_carry();

struct PeakTable {
  static constexpr int kMostDevices = 64;
  static constexpr int kPeaks = 4;
  CarriedEvent peaks[kMostDevices][kPeaks];
  uint64_t driver_live[kMostDevices];
};
PeakTable& peak_table();

template <class Write>
void for_each_ring_peak(Write&& write) {
  for (auto& device : peak_table().peaks)
    for (CarriedEvent& peak : device)
      if (peak.event.kind == EventKind::ring_peak) write(peak);
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_CARRY_H
