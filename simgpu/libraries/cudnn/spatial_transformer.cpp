// Spatial transformers of cuDNN's older interface.
#include "common/entry.h"
#include "cudnn/older_interface.h"

namespace {

using Descriptor = simgpu::CudnnOpaqueDescriptor;

}  // namespace

ENTRY(cudnnCreateSpatialTransformerDescriptor)(Descriptor** descriptor) {
  return simgpu::create_descriptor(descriptor);
}
ENTRY(cudnnDestroySpatialTransformerDescriptor)(Descriptor* descriptor) {
  return simgpu::destroy_descriptor(descriptor);
}
ENTRY(cudnnSetSpatialTransformerNdDescriptor)(Descriptor* descriptor, int, int, int, const int*) {
  return simgpu::accept_setting(descriptor);
}

ENTRY(cudnnSpatialTfGridGeneratorForward)
(simgpu::CudnnHandle* handle, const Descriptor*, const void* theta, void* grid) {
  static simgpu::LibraryKernel kernel("cudnnSpatialTfGridGeneratorForward", 2);
  return simgpu::run(handle, kernel, {theta, grid});
}
ENTRY(cudnnSpatialTfGridGeneratorBackward)
(simgpu::CudnnHandle* handle, const Descriptor*, const void* dgrid, void* dtheta) {
  static simgpu::LibraryKernel kernel("cudnnSpatialTfGridGeneratorBackward", 2);
  return simgpu::run(handle, kernel, {dgrid, dtheta});
}
ENTRY(cudnnSpatialTfSamplerForward)
(simgpu::CudnnHandle* handle, const Descriptor*, const void*, const void*, const void* x,
 const void* grid, const void*, const void*, void* y) {
  static simgpu::LibraryKernel kernel("cudnnSpatialTfSamplerForward", 3);
  return simgpu::run(handle, kernel, {x, grid, y});
}
ENTRY(cudnnSpatialTfSamplerBackward)
(simgpu::CudnnHandle* handle, const Descriptor*, const void*, const void*, const void* x,
 const void*, const void*, void* dx, const void*, const void*, const void* dy, const void* grid,
 const void*, void* dgrid) {
  static simgpu::LibraryKernel kernel("cudnnSpatialTfSamplerBackward", 5);
  return simgpu::run(handle, kernel, {x, dx, dy, grid, dgrid});
}
