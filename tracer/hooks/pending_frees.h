// Blocks of PyTorch's allocator that were freed while another stream still used them. The allocator
// records an event on each such stream just before it reports the free; the block can be reused
// when all of them are done (docs/decisions.md).
#ifndef VRAMTRACK_TRACER_HOOKS_PENDING_FREES_H
#define VRAMTRACK_TRACER_HOOKS_PENDING_FREES_H

#include <cstdint>

namespace vramtrack {

// The allocator's library recorded an event in this thread.
void note_event_record(const void* event);
// Any other call of the thread that shows those records were not a free's.
void forget_event_records();
// At the report of a free: true where the block waits for the events noted since the last report.
bool begin_pending_free(uint64_t address, int16_t device);
// An event is done or gone: records the blocks that waited for it alone.
void end_pending_event(const void* event);

void forget_pending_frees();  // in a child

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_PENDING_FREES_H
