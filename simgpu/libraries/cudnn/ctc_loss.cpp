// The CTC loss of cuDNN's older interface. Its workspace is not documented; one copy of the
// probabilities is assumed.
#include "common/entry.h"
#include "cudnn/older_interface.h"

namespace {

using Descriptor = simgpu::CudnnOpaqueDescriptor;
using simgpu::CudnnTensorDescriptor;

int workspace_size(const CudnnTensorDescriptor* probabilities, std::size_t* size) {
  if (!probabilities || !size) return simgpu::kCudnnBadParamNullPointer;
  *size = sizeof(float);
  for (int i = 0; i < probabilities->dimensions; ++i)
    *size *= static_cast<std::size_t>(probabilities->sizes[i]);
  simgpu::assume("workspace of cuDNN's CTC loss");
  return simgpu::kCudnnSuccess;
}

}  // namespace

ENTRY(cudnnCreateCTCLossDescriptor)(Descriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}
ENTRY(cudnnDestroyCTCLossDescriptor)(Descriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}
ENTRY(cudnnSetCTCLossDescriptorEx)(Descriptor* descriptor, int, int, int) {
  return simgpu::accept_setting(descriptor);
}
ENTRY(cudnnSetCTCLossDescriptor_v9)(Descriptor* descriptor, int, int, int, int) {
  return simgpu::accept_setting(descriptor);
}

ENTRY(cudnnGetCTCLossWorkspaceSize)
(simgpu::CudnnHandle*, const CudnnTensorDescriptor* probabilities, const void*, const int*,
 const int*, const int*, int, const Descriptor*, std::size_t* size) {
  return workspace_size(probabilities, size);
}
ENTRY(cudnnGetCTCLossWorkspaceSize_v8)
(simgpu::CudnnHandle*, int, const Descriptor*, const CudnnTensorDescriptor* probabilities,
 const void*, std::size_t* size) {
  return workspace_size(probabilities, size);
}

ENTRY(cudnnCTCLoss)
(simgpu::CudnnHandle* handle, const void*, const void* probabilities, const int*, const int*,
 const int*, void* costs, const void*, void* gradients, int, const Descriptor*, void* workspace,
 std::size_t) {
  static simgpu::LibraryKernel kernel("cudnnCTCLoss", 4);
  return simgpu::run(handle, kernel, {probabilities, costs, gradients, workspace});
}
ENTRY(cudnnCTCLoss_v8)
(simgpu::CudnnHandle* handle, int, const Descriptor*, const void*, const void* probabilities,
 const int* labels, const int* label_lengths, const int* input_lengths, void* costs, const void*,
 void* gradients, std::size_t, void* workspace) {
  static simgpu::LibraryKernel kernel("cudnnCTCLoss_v8", 7);
  return simgpu::run(
      handle, kernel,
      {probabilities, labels, label_lengths, input_lengths, costs, gradients, workspace});
}
