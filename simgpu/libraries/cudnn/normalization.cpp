// The older interface of cuDNN as far as PyTorch's batch normalization uses it: tensor descriptors,
// and the functions. How much reserve and workspace an engine wants is not documented; none is
// assumed, which is what the plain spatial mode gives.
#include <cstdlib>
#include <cstring>

#include "common/driver.h"
#include "common/entry.h"
#include "cudnn/descriptor.h"
#include "cudnn/handle.h"

namespace {

constexpr int kMaxDimensions = 8;

struct TensorDescriptor {
  int type;
  int dimensions;
  int sizes[kMaxDimensions];
  int strides[kMaxDimensions];
};

int assume_size(std::size_t* size, const char* what) {
  if (!size) return simgpu::kCudnnBadParamNullPointer;
  *size = 0;
  if (simgpu_assume) simgpu_assume(what, 1);
  return simgpu::kCudnnSuccess;
}

int run(simgpu::CudnnHandle* handle, simgpu::LibraryKernel& kernel) {
  if (!handle) return simgpu::kCudnnBadParamNullPointer;
  kernel.launch(handle->stream);
  return simgpu::kCudnnSuccess;
}

}  // namespace

ENTRY(cudnnCreateTensorDescriptor)(TensorDescriptor** descriptor) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  *descriptor = static_cast<TensorDescriptor*>(std::calloc(1, sizeof(TensorDescriptor)));
  return *descriptor ? simgpu::kCudnnSuccess : simgpu::kCudnnAllocationFailed;
}

ENTRY(cudnnDestroyTensorDescriptor)(TensorDescriptor* descriptor) {
  std::free(descriptor);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnSetTensorNdDescriptor)
(TensorDescriptor* descriptor, int type, int dimensions, const int* sizes, const int* strides) {
  if (!descriptor || !sizes || !strides) return simgpu::kCudnnBadParamNullPointer;
  if (dimensions < 1 || dimensions > kMaxDimensions) return simgpu::kCudnnNotSupported;
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

ENTRY(cudnnBatchNormalizationForwardTrainingEx)(simgpu::CudnnHandle* handle) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationForwardTrainingEx");
  return run(handle, kernel);
}

ENTRY(cudnnBatchNormalizationBackwardEx)(simgpu::CudnnHandle* handle) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationBackwardEx");
  return run(handle, kernel);
}

ENTRY(cudnnBatchNormalizationForwardInference)(simgpu::CudnnHandle* handle) {
  static simgpu::LibraryKernel kernel("cudnnBatchNormalizationForwardInference");
  return run(handle, kernel);
}
