// Sampled recording of blocks (`run --sample BYTES`): a block is kept with a probability that grows
// with its size, and stands for others like it, so that sums stay right on average.
//
// Think of the bytes that a thread allocates as a line on which points fall at random, one in
// BYTES: a block is kept if one falls on it, with the probability 1 - exp(-size / BYTES). So a kept
// block stands for size / (1 - exp(-size / BYTES)) bytes; large ones are nearly always kept and
// stand for themselves.
//
// Frees are recorded of kept blocks only, whose addresses are remembered in a table of fixed cost.
#ifndef VRAMTRACK_TRACER_HOOKS_SAMPLING_H
#define VRAMTRACK_TRACER_HOOKS_SAMPLING_H

#include <vramtrack/trace_format.h>

namespace vramtrack {

// Whether the block is to be recorded. Without sampling always; else a kept one becomes a
// sampled_block. To be asked once for each allocation.
bool keep_allocation(Event& event);
// Whether its allocation was kept.
bool keep_free(const Event& event);

void forget_sampled();  // in a forked child

// ln(x) for x in (0, 1], and 1 - exp(-x) for x >= 0: libm is not ours to need.
double natural_logarithm(double x);
double share_hit(double x);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_SAMPLING_H
