// Copies and sets of device memory as events: what they touch, like a kernel.
#ifndef VRAMTRACK_TRACER_HOOKS_COPY_RECORDS_H
#define VRAMTRACK_TRACER_HOOKS_COPY_RECORDS_H

#include <cstdint>

#include "hooks/cuda_api.h"

namespace vramtrack {

// Where the device's part of a copy begins, 0 where it is none of the device's.
uint64_t source_of(const CUDA_MEMCPY3D& copy);
uint64_t destination_of(const CUDA_MEMCPY3D& copy);

// Nothing is written where neither address is the device's. `graph`: see record_access.
void record_copy(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream, uint64_t graph);
void record_set(uint64_t to, uint64_t bytes, uint64_t stream, uint64_t graph);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_COPY_RECORDS_H
