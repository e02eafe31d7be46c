// What a recording holds per category at its peak, to set beside an estimate.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_MEASURED_H
#define VRAMTRACK_ANALYZER_ESTIMATE_MEASURED_H

#include "estimate/estimate_report.h"
#include "trace/recording.h"

namespace vramtrack {

// `device` -1: the one with the highest peak. Throws InputError where the recording has none.
Measured measure_recording(const Recording& recording, int16_t device = -1);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_MEASURED_H
