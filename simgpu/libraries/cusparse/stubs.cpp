// All of cuSPARSE but its handles, which says by name that it is not simulated. The real library
// embeds a static CUDA runtime, which would fail on the simulated driver without saying why.
#include "common/stubs.h"

#define SIMGPU_NOT_SUPPORTED 10  // CUSPARSE_STATUS_NOT_SUPPORTED
#include "cusparse/entry_points.def"

TEXT_ENTRY(cusparseGetErrorName)(int status) {
  return status == 0 ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_NOT_SUPPORTED";
}
TEXT_ENTRY(cusparseGetErrorString)(int status) {
  return status == 0 ? "success" : "operation not supported (not simulated)";
}
