// Memory that is not ordered by a stream: device, pitched, managed, pinned, registered, shared
// between processes; and questions about pointers.
#include "runtime/call.h"

using namespace simgpu;

// A request for nothing succeeds and gives null, which the driver would refuse.
cudaError_t cudaMalloc(void** devPtr, size_t size) {
  if (size == 0 && devPtr != nullptr) {
    *devPtr = nullptr;
    return record(enter_context());
  }
  return in_context(&DriverTable::MemAlloc, devPtr, size);
}

cudaError_t cudaFree(void* devPtr) {
  if (devPtr == nullptr) return record(enter_context());
  return in_context(&DriverTable::MemFree, devPtr);
}

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  return in_context(&DriverTable::MemAllocManaged, devPtr, size, flags);
}

namespace {

constexpr unsigned int kElementSize = 4;  // the smallest that cuMemAllocPitch takes

cudaError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t height) {
  const cudaError_t error = enter_context();
  if (error != cudaSuccess) return error;
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  return call(&DriverTable::MemAllocPitch, pointer, pitch, width, height, kElementSize);
}

}  // namespace

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  return record(allocate_pitched(devPtr, pitch, width, height));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitchedDevPtr, cudaExtent extent) {
  if (pitchedDevPtr == nullptr) return record(cudaErrorInvalidValue);
  cudaPitchedPtr result{};
  const cudaError_t error =
      allocate_pitched(&result.ptr, &result.pitch, extent.width, extent.height * extent.depth);
  if (error != cudaSuccess) return record(error);
  result.xsize = extent.width;
  result.ysize = extent.height;
  *pitchedDevPtr = result;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  if (size == 0 && pHost != nullptr) {
    *pHost = nullptr;
    return record(enter_context());
  }
  return in_context(&DriverTable::MemHostAlloc, pHost, size, flags);
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* ptr) {
  if (ptr == nullptr) return record(enter_context());
  return in_context(&DriverTable::MemFreeHost, ptr);
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return in_context(&DriverTable::MemHostRegister, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void* ptr) {
  return in_context(&DriverTable::MemHostUnregister, ptr);
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost, unsigned int flags) {
  return in_context(&DriverTable::MemHostGetDevicePointer, pDevice, pHost, flags);
}

cudaError_t cudaHostGetFlags(unsigned int* pFlags, void* pHost) {
  return in_context(&DriverTable::MemHostGetFlags, pFlags, pHost);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return in_context(&DriverTable::MemGetInfo, free, total);
}

namespace {

cudaError_t pointer_attributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  const cudaError_t error = enter_context();
  if (error != cudaSuccess) return error;
  CUmemorytype type{};
  unsigned int managed = 0;
  int device = cudaInvalidDeviceId;
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
  const CUresult result = driver().plain.PointerGetAttributes(
      5, wanted, values, reinterpret_cast<CUdeviceptr>(pointer));
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) return to_runtime(result);

  *attributes = cudaPointerAttributes{};
  if (result != CUDA_SUCCESS || static_cast<int>(type) == 0) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  attributes->type = managed != 0                 ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeDevice;
  attributes->device = device;
  attributes->devicePointer = reinterpret_cast<void*>(device_pointer);
  attributes->hostPointer = host_pointer;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  return record(pointer_attributes(attributes, ptr));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  return in_context(&DriverTable::IpcGetMemHandle, handle, devPtr);
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  return in_context(&DriverTable::IpcOpenMemHandle, devPtr, handle, flags);
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  return in_context(&DriverTable::IpcCloseMemHandle, devPtr);
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, cudaMemRangeAttribute attribute,
                                     const void* devPtr, size_t count) {
  return in_context(&DriverTable::MemRangeGetAttribute, data, dataSize, attribute, devPtr, count);
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* dataSizes,
                                      cudaMemRangeAttribute* attributes, size_t numAttributes,
                                      const void* devPtr, size_t count) {
  return in_context(&DriverTable::MemRangeGetAttributes, data, dataSizes, attributes, numAttributes,
                    devPtr, count);
}

namespace {

[[maybe_unused]] CUmemLocation location_of(int device) {
  CUmemLocation location{};
  location.type =
      device == cudaCpuDeviceId ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

}  // namespace

#if CUDART_VERSION >= 13000
cudaError_t cudaMemAdvise(const void* devPtr, size_t count, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  return in_context(&DriverTable::MemAdvise, devPtr, count, advice, location);
}
#else
cudaError_t cudaMemAdvise(const void* devPtr, size_t count, cudaMemoryAdvise advice, int device) {
  return in_context(&DriverTable::MemAdvise, devPtr, count, advice, location_of(device));
}

cudaError_t cudaMemAdvise_v2(const void* devPtr, size_t count, cudaMemoryAdvise advice,
                             cudaMemLocation location) {
  return in_context(&DriverTable::MemAdvise, devPtr, count, advice, location);
}
#endif

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  cudaError_t error = enter_context();
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (error == cudaSuccess) error = primary_context(dstDevice, &to);
  if (error == cudaSuccess) error = primary_context(srcDevice, &from);
  if (error != cudaSuccess || count == 0) return record(error);
  return in_context(&DriverTable::MemcpyPeer, dst, to, src, from, count);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice,
                                size_t count, cudaStream_t stream) {
  cudaError_t error = enter_context();
  CUcontext to = nullptr;
  CUcontext from = nullptr;
  if (error == cudaSuccess) error = primary_context(dstDevice, &to);
  if (error == cudaSuccess) error = primary_context(srcDevice, &from);
  if (error != cudaSuccess || count == 0) return record(error);
  return in_context(&DriverTable::MemcpyPeerAsync, dst, to, src, from, count, stream);
}
