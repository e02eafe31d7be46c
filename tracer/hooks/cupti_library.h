// Where libcupti is: loaded already, beside the CUDA runtime that the program uses, or in a
// toolkit.
#ifndef VRAMTRACK_TRACER_HOOKS_CUPTI_LIBRARY_H
#define VRAMTRACK_TRACER_HOOKS_CUPTI_LIBRARY_H

#include "cupti/addresses.h"
#include "record/text.h"

namespace vramtrack {

struct CuptiLibrary {
  CuptiAddresses functions;
  FixedText<512> path;
  FixedText<640> why_not;  // empty: found
};

// May open a library. `driver_version` as the driver gives it (13020).
void find_cupti(CuptiLibrary& found, int driver_version);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_CUPTI_LIBRARY_H
