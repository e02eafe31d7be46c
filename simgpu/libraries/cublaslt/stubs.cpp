// The rest of cublasLt, from its table.
#include "common/stubs.h"
#include "cublas/handle.h"

#define SIMGPU_NOT_SUPPORTED simgpu::kCublasNotSupported
#include "cublaslt/entry_points.def"
