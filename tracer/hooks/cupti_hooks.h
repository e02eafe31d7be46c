// Starts the second witness, and ends it when the program wants CUPTI for itself.
#ifndef VRAMTRACK_TRACER_HOOKS_CUPTI_HOOKS_H
#define VRAMTRACK_TRACER_HOOKS_CUPTI_HOOKS_H

#include "hooks/table.h"

namespace vramtrack {

// After the driver was initialised, before there is a context. Under a Guard.
void start_cupti_if_wanted();
// The program asked the loader for a function of libcupti: it is about to use it.
bool is_cupti_hook(Hook hook);
void program_wants_cupti(Hook hook);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_CUPTI_HOOKS_H
