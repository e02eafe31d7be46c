// The stubs of not_simulated.def. Their arguments are never looked at, so they are declared without
// any; for that reason no CUDA header may be included here.
namespace simgpu {
int fail_not_simulated(const char* function);
}

#define NOT_SIMULATED(name)                                         \
  extern "C" __attribute__((visibility("default"))) int name(void); \
  extern "C" int name(void) {                                       \
    return simgpu::fail_not_simulated(#name);                       \
  }
#include "runtime/not_simulated.def"
