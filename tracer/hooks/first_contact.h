// What waits until a process turns out to use a GPU: in `ls` the shim does nothing at all.
#ifndef VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H
#define VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H

#include <atomic>

namespace vramtrack {

extern std::atomic<bool> g_contacted;
void make_first_contact();

inline void first_contact() {
  if (!g_contacted.load(std::memory_order_relaxed)) make_first_contact();
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_FIRST_CONTACT_H
