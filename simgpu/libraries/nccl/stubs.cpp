// The rest of NCCL, from its table.
#include "common/stubs.h"

#define SIMGPU_NOT_SUPPORTED 5  // ncclInvalidUsage
#include "nccl/entry_points.def"
