#include "common/entry.h"

#include <cstdio>

namespace simgpu {

void say_not_simulated(const char* name, bool* said) {
  if (__atomic_exchange_n(said, true, __ATOMIC_RELAXED)) return;
  std::fprintf(stderr, "simgpu: not simulated: %s\n", name);
}

}  // namespace simgpu
