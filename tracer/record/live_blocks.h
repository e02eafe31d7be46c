// What a caching allocator has handed out and not got back, by address: so that the helper can ask
// inside the process which call stacks keep more and more blocks, and who holds the newest of them.
//
// A fixed table. Blocks beyond its size are not followed; nothing else depends on it. Where its
// lock cannot be had in reasonable time it is given up until the process forks, because a missed
// free would make it name memory that is somebody else's by now. Functions are called under a
// Guard.
#ifndef VRAMTRACK_TRACER_RECORD_LIVE_BLOCKS_H
#define VRAMTRACK_TRACER_RECORD_LIVE_BLOCKS_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

// Off until somebody wants to ask.
void live_blocks_enable();

void live_block_added(uint64_t address, uint64_t size, uint32_t stack);
void live_block_removed(uint64_t address);

// A step of the job begins.
void live_blocks_step();

struct OldBlock {
  uint64_t address;
  uint64_t size;
  uint32_t stack;
  uint32_t age;             // in steps
  uint64_t bytes_of_stack;  // that are as old as this or older
  uint32_t blocks_of_stack;
};

// Of stacks that hold blocks from at least four different steps: their newest blocks that have
// outlived the step after their own, at most `per_stack` (1 or 2) of each. Stacks that hold most
// come first. Returns how many.
size_t growing_blocks(OldBlock* blocks, size_t most, unsigned per_stack);

// Before enough steps were counted to see what grows: two or so blocks of each stack that holds at
// least eight, and at least a tenth of all bytes. Later none.
size_t blocks_of_largest(OldBlock* blocks, size_t most, unsigned per_stack);

// In a child right after fork.
void live_blocks_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_LIVE_BLOCKS_H
