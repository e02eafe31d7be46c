#include "runtime/graph_params.h"

#include <cstring>

#include "runtime/call.h"
#include "runtime/copy_params.h"
#include "runtime/registry.h"

namespace simgpu {
namespace {

template <class From>
cudaError_t fill_kernel(const From& from, CUDA_KERNEL_NODE_PARAMS_v2* to) {
  *to = CUDA_KERNEL_NODE_PARAMS_v2{};
  to->gridDimX = from.gridDim.x;
  to->gridDimY = from.gridDim.y;
  to->gridDimZ = from.gridDim.z;
  to->blockDimX = from.blockDim.x;
  to->blockDimY = from.blockDim.y;
  to->blockDimZ = from.blockDim.z;
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return find_kernel(from.func, &to->kern);
}

}  // namespace

cudaError_t to_driver(const cudaKernelNodeParams& from, CUDA_KERNEL_NODE_PARAMS_v2* to) {
  return fill_kernel(from, to);
}

cudaKernelNodeParams to_runtime(const CUDA_KERNEL_NODE_PARAMS_v2& from) {
  cudaKernelNodeParams to{};
  to.func = from.kern != nullptr ? host_of(from.kern) : host_of(from.func);
  to.gridDim = dim3(from.gridDimX, from.gridDimY, from.gridDimZ);
  to.blockDim = dim3(from.blockDimX, from.blockDimY, from.blockDimZ);
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  return to;
}

CUDA_MEMSET_NODE_PARAMS_v1 to_driver(const cudaMemsetParams& from) {
  CUDA_MEMSET_NODE_PARAMS_v1 to{};
  to.dst = reinterpret_cast<CUdeviceptr>(from.dst);
  to.pitch = from.pitch;
  to.value = from.value;
  to.elementSize = from.elementSize;
  to.width = from.width;
  to.height = from.height;
  return to;
}

cudaMemsetParams to_runtime(const CUDA_MEMSET_NODE_PARAMS_v1& from) {
  cudaMemsetParams to{};
  to.dst = reinterpret_cast<void*>(from.dst);
  to.pitch = from.pitch;
  to.value = from.value;
  to.elementSize = from.elementSize;
  to.width = from.width;
  to.height = from.height;
  return to;
}

// Kernel, copy and set have different forms, because the driver's carry a context; the rest are
// alike.
cudaError_t to_driver(const cudaGraphNodeParams& from, CUcontext context, CUgraphNodeParams* to) {
  static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
  std::memcpy(static_cast<void*>(to), &from, sizeof *to);
  switch (from.type) {
    case cudaGraphNodeTypeKernel: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel;
      const cudaError_t error = fill_kernel(from.kernel, &kernel);
      static_assert(sizeof kernel == sizeof to->kernel);
      std::memcpy(static_cast<void*>(&to->kernel), &kernel, sizeof kernel);
      to->kernel.ctx = context;
      return error;
    }
    case cudaGraphNodeTypeMemcpy: {
      CUDA_MEMCPY_NODE_PARAMS copy{};
      copy.flags = from.memcpy.flags;
      copy.copyCtx = context;
      const cudaError_t error = to_driver(from.memcpy.copyParams, &copy.copyParams);
      to->memcpy = copy;
      return error;
    }
    case cudaGraphNodeTypeMemset:
      to->memset.ctx = context;
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      to->conditional.ctx = context;
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

void copy_results(const CUgraphNodeParams& from, cudaGraphNodeParams* to) {
  if (to->type == cudaGraphNodeTypeMemAlloc) {
    to->alloc.dptr = reinterpret_cast<void*>(from.alloc.dptr);
  } else if (to->type == cudaGraphNodeTypeConditional) {
    to->conditional.phGraph_out = from.conditional.phGraph_out;
  }
}

}  // namespace simgpu
