// The rest of cuSOLVER, which says by name that it is not simulated. The real library embeds a static
// CUDA runtime, which would fail on the simulated driver without saying why.
#include "common/stubs.h"

#define SIMGPU_NOT_SUPPORTED 9  // CUSOLVER_STATUS_NOT_SUPPORTED
#include "cusolver/entry_points.def"
