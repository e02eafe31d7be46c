// What NVML has and no other file here defines: it answers NVML_ERROR_NOT_SUPPORTED, which is what
// programs meet on cards that lack a feature.
#include "nvml_types.h"

#define SIMGPU_NVML(name)                                              \
  extern "C" __attribute__((weak, visibility("default"))) int name();  \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    return NVML_ERROR_NOT_SUPPORTED;                                   \
  }
#include "functions.def"
#undef SIMGPU_NVML
