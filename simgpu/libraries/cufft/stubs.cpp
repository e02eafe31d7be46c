// The rest of cuFFT, which says by name that it is not simulated. The real library embeds a static
// CUDA runtime, which would fail on the simulated driver without saying why.
#include "common/stubs.h"

#define SIMGPU_NOT_SUPPORTED 16  // CUFFT_NOT_SUPPORTED
#include "cufft/entry_points.def"
