// CUPTI's time, told in the trace's: one offset, measured when the witness begins and again at each
// flush. CUPTI reads the real-time clock, which may step; the trace's does not.
#ifndef VRAMTRACK_TRACER_CUPTI_CLOCK_H
#define VRAMTRACK_TRACER_CUPTI_CLOCK_H

#include <cstdint>

#include "cupti/functions.h"

namespace vramtrack {

void measure_cupti_clock(const CuptiFunctions& cupti);
// Since the start of the file; 0 for what came before it, and for a time that CUPTI does not know.
uint64_t trace_time_of(uint64_t cupti_ns);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_CLOCK_H
