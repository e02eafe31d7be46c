// When the shim begins: with its constructor, or with the first hook where a constructor of another
// library comes before that. And what waits until a process turns out to use a GPU: in `ls` the
// shim does nothing at all.
#ifndef VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H
#define VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H

#include <atomic>

#include "record/process.h"

namespace vramtrack {

extern std::atomic<bool> g_begun;
void begin();

// Whether calls are to be recorded; otherwise hooks only forward.
inline bool ready() {
  if (!g_begun.load(std::memory_order_acquire)) begin();
  return wanted();
}

extern std::atomic<bool> g_contacted;
void make_first_contact();

inline void first_contact() {
  if (!g_contacted.load(std::memory_order_relaxed)) make_first_contact();
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H
