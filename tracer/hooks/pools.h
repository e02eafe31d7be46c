// Stream-ordered pools, and what they hold of the device: a pool's physical size is its RESERVED
// attribute, asked after each call that may have changed it and recorded when it did.
#ifndef VRAMTRACK_TRACER_HOOKS_POOLS_H
#define VRAMTRACK_TRACER_HOOKS_POOLS_H

#include <cstdint>

#include "hooks/cuda_api.h"
#include "hooks/emit.h"

namespace vramtrack {

// Follows a pool from now on, and records its creation where no call of the program did.
void see_pool(const Call& call, CUmemoryPool pool, int16_t device);
// Asks one pool, or all of them.
void update_pool(const Call& call, CUmemoryPool pool);
void update_all_pools(const Call& call);
void forget_pool(CUmemoryPool pool);

// Memory of graph nodes: one pool per device, without a handle.
void expect_graph_memory();
void update_graph_memory(const Call& call, int16_t device);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_POOLS_H
