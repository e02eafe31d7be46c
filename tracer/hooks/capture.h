// Whether work on a stream is being captured into a graph instead of being run.
#ifndef VRAMTRACK_TRACER_HOOKS_CAPTURE_H
#define VRAMTRACK_TRACER_HOOKS_CAPTURE_H

#include <atomic>

#include "hooks/cuda_api.h"

namespace vramtrack {

// Set by the first capture of the process: most have none, and need not ask at every launch.
extern constinit std::atomic<bool> g_captures;
bool ask_whether_captured(CUstream stream);

inline bool is_captured(CUstream stream) {
  return g_captures.load(std::memory_order_relaxed) && ask_whether_captured(stream);
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_CAPTURE_H
