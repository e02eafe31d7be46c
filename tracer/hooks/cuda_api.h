// cuda.h with every version of every function declared under its exported name: the driver's
// header renames them otherwise (cuMemAlloc becomes cuMemAlloc_v2).
#ifndef VRAMTRACK_TRACER_HOOKS_CUDA_API_H
#define VRAMTRACK_TRACER_HOOKS_CUDA_API_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#endif  // VRAMTRACK_TRACER_HOOKS_CUDA_API_H
