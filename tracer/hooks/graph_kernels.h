// What an executable graph will do: its kernels, copies and sets with the memory that they are
// given, read when it is made. Launching it is then one event.
#ifndef VRAMTRACK_TRACER_HOOKS_GRAPH_KERNELS_H
#define VRAMTRACK_TRACER_HOOKS_GRAPH_KERNELS_H

#include "hooks/cuda_api.h"

namespace vramtrack {

void record_graph_work(CUgraph graph, CUgraphExec exec);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_GRAPH_KERNELS_H
