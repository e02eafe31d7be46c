// The rest of cuDNN, from its table.
#include "common/stubs.h"
#include "cudnn/descriptor.h"

#define SIMGPU_NOT_SUPPORTED simgpu::kCudnnNotSupported
#include "cudnn/entry_points.def"
