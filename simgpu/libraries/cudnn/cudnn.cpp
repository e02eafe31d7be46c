// cuDNN for the simulated GPU: the handle and the graph API (convolutions and attention in
// PyTorch), which plans and runs nothing. Of the older interface there is what PyTorch uses for
// normalization, recurrent networks, spatial transformers and CTC, in files of their own; the rest
// are stubs.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/driver.h"
#include "common/entry.h"
#include "cudnn/descriptor.h"
#include "cudnn/handle.h"

namespace {

using simgpu::CudnnDescriptor;

using Handle = simgpu::CudnnHandle;

constexpr char kName[] = "cuDNN";
constexpr int kPackDataPointers = 1601;  // CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS
constexpr int kVersion = 92600;  // PyTorch refuses a cuDNN older than the one it was compiled for

}  // namespace

extern "C" __attribute__((visibility("default"))) std::size_t cudnnGetVersion() {
  return kVersion;
}
extern "C" __attribute__((visibility("default"))) std::size_t cudnnGetCudartVersion() {
  return 13000;
}

ENTRY(cudnnGetProperty)(int property, int* value) {
  if (!value || property < 0 || property > 2) return simgpu::kCudnnBadParam;
  const int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  *value = parts[property];
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnCreate)(Handle** handle) {
  if (!handle) return simgpu::kCudnnBadParamNullPointer;
  *handle = static_cast<Handle*>(std::calloc(1, sizeof(Handle)));
  if (!*handle) return simgpu::kCudnnAllocationFailed;
  (*handle)->device = simgpu::current_device();
  if (simgpu::open_library((*handle)->device, kName)) return simgpu::kCudnnSuccess;
  std::free(*handle);
  *handle = nullptr;
  return simgpu::kCudnnAllocationFailed;
}

ENTRY(cudnnDestroy)(Handle* handle) {
  if (handle) simgpu::close_library(handle->device, kName);
  std::free(handle);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnSetStream)(Handle* handle, void* stream) {
  if (!handle) return simgpu::kCudnnBadParamNullPointer;
  handle->stream = stream;
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnGetStream)(Handle* handle, void** stream) {
  if (!handle || !stream) return simgpu::kCudnnBadParamNullPointer;
  *stream = handle->stream;
  return simgpu::kCudnnSuccess;
}

TEXT_ENTRY(cudnnGetErrorString)(int status) {
  switch (status) {
    case simgpu::kCudnnSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case simgpu::kCudnnNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED (not simulated)";
    case simgpu::kCudnnAllocationFailed:
      return "CUDNN_STATUS_ALLOCATION_FAILED";
    default:
      return "CUDNN_STATUS_BAD_PARAM";
  }
}

extern "C" __attribute__((visibility("default"))) void cudnnGetLastErrorString(char* message,
                                                                               std::size_t size) {
  if (message && size) *message = '\0';
}

ENTRY(cudnnBackendCreateDescriptor)(int kind, CudnnDescriptor** descriptor) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  *descriptor = CudnnDescriptor::create(kind);
  return *descriptor ? simgpu::kCudnnSuccess : simgpu::kCudnnAllocationFailed;
}

ENTRY(cudnnBackendDestroyDescriptor)(CudnnDescriptor* descriptor) {
  CudnnDescriptor::destroy(descriptor);
  return simgpu::kCudnnSuccess;
}

ENTRY(cudnnBackendInitialize)(CudnnDescriptor* descriptor) {
  return descriptor ? simgpu::kCudnnSuccess : simgpu::kCudnnBadParamNullPointer;
}

ENTRY(cudnnBackendFinalize)(CudnnDescriptor* descriptor) {
  return descriptor ? simgpu::kCudnnSuccess : simgpu::kCudnnBadParamNullPointer;
}

ENTRY(cudnnBackendSetAttribute)
(CudnnDescriptor* descriptor, int attribute, int type, std::int64_t count, const void* elements) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  return descriptor->set(attribute, type, count, elements);
}

ENTRY(cudnnBackendGetAttribute)
(const CudnnDescriptor* descriptor, int attribute, int type, std::int64_t requested,
 std::int64_t* count, void* elements) {
  if (!descriptor) return simgpu::kCudnnBadParamNullPointer;
  return descriptor->get(attribute, type, requested, count, elements);
}

ENTRY(cudnnBackendExecute)(Handle* handle, CudnnDescriptor* plan, CudnnDescriptor* pack) {
  if (!handle || !plan || !pack) return simgpu::kCudnnBadParamNullPointer;
  constexpr std::size_t kMost = simgpu::LibraryKernel::kMostPointers;
  static simgpu::LibraryKernel kernel("cudnnBackendExecute", kMost);
  const void* pointers[kMost] = {};
  std::int64_t count = 0;
  if (pack->get(kPackDataPointers, simgpu::kTypeVoidPointer, kMost, &count, pointers) !=
      simgpu::kCudnnSuccess)
    count = 0;
  kernel.launch(handle->stream, pointers, std::min(static_cast<std::size_t>(count), kMost));
  return simgpu::kCudnnSuccess;
}
