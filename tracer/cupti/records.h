// From CUPTI's activity records to events of the trace.
#ifndef VRAMTRACK_TRACER_CUPTI_RECORDS_H
#define VRAMTRACK_TRACER_CUPTI_RECORDS_H

#include <cstddef>
#include <cstdint>

#include "cupti/functions.h"

namespace vramtrack {

// `version` is the library's, which decides how long its records are. Under a Guard.
void record_activities(const CuptiFunctions& cupti, uint32_t version, uint8_t* buffer,
                       size_t valid_bytes);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_CUPTI_RECORDS_H
