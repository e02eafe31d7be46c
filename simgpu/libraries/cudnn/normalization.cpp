// The older interface of cuDNN as far as PyTorch's batch normalization uses it: tensor descriptors,
// and the functions. How much reserve and workspace an engine wants is not documented; none is
// assumed, which is what the plain spatial mode gives.
#include <cstring>

#include "common/entry.h"
#include "cudnn/older_interface.h"

namespace {

using TensorDescriptor = simgpu::CudnnTensorDescriptor;

int assume_size(std::size_t* size, const char* what) {
  if (!size) return simgpu::kCudnnBadParamNullPointer;
  *size = 0;
  simgpu::assume(what);
  return simgpu::kCudnnSuccess;
}

}  // namespace

ENTRY(cudnnCreateTensorDescriptor)(TensorDescriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}

ENTRY(cudnnDestroyTensorDescriptor)(TensorDescriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}

ENTRY(cudnnSetTensorNdDescriptor)
(TensorDescriptor* descriptor, int type, int dimensions, const int* sizes, const int* strides) {
  if (!descriptor || !sizes || !strides) return simgpu::kCudnnBadParamNullPointer;
  if (dimensions < 1 || dimensions > TensorDescriptor::kMaxDimensions)
    return simgpu::kCudnnNotSupported;
  descriptor->type = type;
  descriptor->dimensions = dimensions;
  const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(dimensions);
  std::memcpy(descriptor->sizes, sizes, bytes);
  std::memcpy(descriptor->strides, strides, bytes);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetTensorNdDescriptor)
(const TensorDescriptor* descriptor, int requested, int* type, int* dimensions, int* sizes,
 int* strides) {
  if (!descriptor || !type || !dimensions || !sizes || !strides)
    return simgpu::kCudnnBadParamNullPointer;
  *type = descriptor->type;
  *dimensions = descriptor->dimensions;
  for (int i = 0; i < requested && i < descriptor->dimensions; ++i) {
    sizes[i] = descriptor->sizes[i];
    strides[i] = descriptor->strides[i];
  }
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)
(void*, int, int, void*, void*, void*, void*, void*, std::size_t* size) {
  return assume_size(size, "workspace of cuDNN's batch normalization");
}

ENTRY(cudnnGetBatchNormalizationBackwardExWorkspaceSize)
(void*, int, int, void*, void*, void*, void*, void*, void*, void*, std::size_t* size) {
  return assume_size(size, "workspace of cuDNN's batch normalization");
}

ENTRY(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)
(void*, int, int, void*, void*, std::size_t* size) {
  return assume_size(size, "reserve of cuDNN's batch normalization");
}

ENTRY(cudnnBatchNormalizationForwardTrainingEx)
(simgpu::CudnnHandle* handle, int, int, const void*, const void*, const void*, const void* x,
 const void*, const void* z, const void*, const void* y, const void*, const void* scale,
 const void* bias, double, const void* running_mean, const void* running_variance, double,
 const void* saved_mean, const void* saved_variance, const void*, const void* workspace,
 std::size_t, const void* reserve, std::size_t) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationForwardTrainingEx", 11);
  return simgpu::run(handle, kernel,
                     {x, z, y, scale, bias, running_mean, running_variance, saved_mean,
                      saved_variance, workspace, reserve});
}

ENTRY(cudnnBatchNormalizationBackwardEx)
(simgpu::CudnnHandle* handle, int, int, const void*, const void*, const void*, const void*,
 const void*, const void* x, const void*, const void* y, const void*, const void* dy, const void*,
 const void* dz, const void*, const void* dx, const void*, const void* scale, const void* bias,
 const void* dscale, const void* dbias, double, const void* saved_mean, const void* saved_variance,
 const void*, const void* workspace, std::size_t, const void* reserve, std::size_t) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationBackwardEx", 13);
  return simgpu::run(handle, kernel,
                     {x, y, dy, dz, dx, scale, bias, dscale, dbias, saved_mean, saved_variance,
                      workspace, reserve});
}

ENTRY(cudnnBatchNormalizationForwardInference)
(simgpu::CudnnHandle* handle, int, const void*, const void*, const void*, const void* x,
 const void*, const void* y, const void*, const void* scale, const void* bias, const void* mean,
 const void* variance, double) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationForwardInference", 6);
  return simgpu::run(handle, kernel, {x, y, scale, bias, mean, variance});
}
