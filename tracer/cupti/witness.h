// CUPTI as the second witness: what the driver itself tells of memory and kernels, beside what our
// hooks saw. Only on --cupti.
//
//   off --start--> running --the program calls CUPTI--> aside (for good)
//                     \----the process ends-----------> ended
//
// The danger: CUPTI has room for one subscriber, and a profiler of the program comes first. All of
// this therefore ends, completely and before the program's own call is forwarded, as soon as the
// program wants CUPTI. At exit libcupti takes itself down, so that we end before it does.
#ifndef VRAMTRACK_TRACER_CUPTI_WITNESS_H
#define VRAMTRACK_TRACER_CUPTI_WITNESS_H

#include "cupti/addresses.h"

namespace vramtrack {

// Under a Guard, each of them.
void start_cupti(const CuptiAddresses& addresses, const char* library);
void cupti_unavailable(const char* why);  // one line; tracing goes on
// Before the program's own call; does nothing but remember where the witness does not run.
void step_aside_from_cupti(const char* function);
// At defined moments: an allocation that failed, a context that ends.
void flush_cupti();

void cupti_context_created();
void cupti_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_WITNESS_H
