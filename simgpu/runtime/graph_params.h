// Parameters of graph nodes, turned from the runtime's form into the driver's and back.
#pragma once

#include "runtime/headers.h"

namespace simgpu {

cudaError_t to_driver(const cudaKernelNodeParams& from, CUDA_KERNEL_NODE_PARAMS_v2* to);
cudaKernelNodeParams to_runtime(const CUDA_KERNEL_NODE_PARAMS_v2& from);
CUDA_MEMSET_NODE_PARAMS_v1 to_driver(const cudaMemsetParams& from);
cudaMemsetParams to_runtime(const CUDA_MEMSET_NODE_PARAMS_v1& from);
cudaError_t to_driver(const cudaGraphNodeParams& from, CUcontext context, CUgraphNodeParams* to);

// What the driver wrote into the parameters of a new node (the address of an allocation, the body
// of a conditional), carried back.
void copy_results(const CUgraphNodeParams& from, cudaGraphNodeParams* to);

}  // namespace simgpu
