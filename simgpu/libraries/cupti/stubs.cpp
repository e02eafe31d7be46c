// The rest of CUPTI, from its table.
#include "common/stubs.h"

#define SIMGPU_NOT_SUPPORTED 27  // CUPTI_ERROR_NOT_SUPPORTED
#include "cupti/entry_points.def"
