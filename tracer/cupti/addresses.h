// The functions of libcupti that the witness calls, without their types: CUPTI's headers and the
// form of cuda.h that hooks/ needs exclude each other. Whoever finds the library fills this in; a
// function that an older one lacks is nullptr.
#ifndef VRAMTRACK_TRACER_CUPTI_ADDRESSES_H
#define VRAMTRACK_TRACER_CUPTI_ADDRESSES_H

namespace vramtrack {

struct CuptiAddresses {
#define FUNCTION(name) void* name = nullptr;
#include "cupti/functions.def"
#undef FUNCTION
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_ADDRESSES_H
