// Every function that libcuda exports and that no other file here defines: it says once that it is
// not simulated and fails. The definitions are weak, so writing a function anywhere else in this
// folder is all it takes to implement it; the list of exports stays the one of entry_points.def.
//
// cuda.h is not included here: the stubs take no notice of their arguments.
#include "../simgpu.h"

extern "C" __attribute__((visibility("default"))) int simgpu_not_simulated(const char* name);

#define SIMGPU_ENTRY(exported, name, version, per_thread)                  \
  extern "C" __attribute__((weak, visibility("default"))) int exported();  \
  extern "C" __attribute__((weak, visibility("default"))) int exported() { \
    return simgpu_not_simulated(#exported);                                \
  }
#include "entry_points.def"
#undef SIMGPU_ENTRY
