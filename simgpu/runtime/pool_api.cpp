// Memory pools, apart from allocating from them.
#include "runtime/call.h"

using namespace simgpu;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  return in_driver(&DriverTable::DeviceGetDefaultMemPool, memPool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  return in_driver(&DriverTable::DeviceGetMemPool, memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  return in_driver(&DriverTable::DeviceSetMemPool, device, memPool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const cudaMemPoolProps* poolProps) {
  return in_context(&DriverTable::MemPoolCreate, memPool, poolProps);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  return in_context(&DriverTable::MemPoolDestroy, memPool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  return in_context(&DriverTable::MemPoolTrimTo, memPool, minBytesToKeep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, cudaMemPoolAttr attr, void* value) {
  return in_context(&DriverTable::MemPoolSetAttribute, memPool, attr, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, cudaMemPoolAttr attr, void* value) {
  return in_context(&DriverTable::MemPoolGetAttribute, memPool, attr, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const cudaMemAccessDesc* descList,
                                 size_t count) {
  return in_context(&DriverTable::MemPoolSetAccess, memPool, descList, count);
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t memPool,
                                 cudaMemLocation* location) {
  return in_context(&DriverTable::MemPoolGetAccess, flags, memPool, location);
}

cudaError_t cudaMemPoolExportToShareableHandle(void* shareableHandle, cudaMemPool_t memPool,
                                               cudaMemAllocationHandleType handleType,
                                               unsigned int flags) {
  return in_context(&DriverTable::MemPoolExportToShareableHandle, shareableHandle, memPool,
                    handleType, flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* memPool, void* shareableHandle,
                                                 cudaMemAllocationHandleType handleType,
                                                 unsigned int flags) {
  return in_context(&DriverTable::MemPoolImportFromShareableHandle, memPool, shareableHandle,
                    handleType, flags);
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* exportData, void* ptr) {
  return in_context(&DriverTable::MemPoolExportPointer, exportData, ptr);
}

cudaError_t cudaMemPoolImportPointer(void** ptr, cudaMemPool_t memPool,
                                     cudaMemPoolPtrExportData* exportData) {
  return in_context(&DriverTable::MemPoolImportPointer, ptr, memPool, exportData);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* memPool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  return in_context(&DriverTable::MemGetDefaultMemPool, memPool, location, type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* memPool, cudaMemLocation* location,
                              cudaMemAllocationType type) {
  return in_context(&DriverTable::MemGetMemPool, memPool, location, type);
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                              cudaMemPool_t memPool) {
  return in_context(&DriverTable::MemSetMemPool, location, type, memPool);
}
#endif

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return in_driver(&DriverTable::DeviceGraphMemTrim, device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                                           void* value) {
  return in_driver(&DriverTable::DeviceGetGraphMemAttribute, device, attr, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attr,
                                           void* value) {
  return in_driver(&DriverTable::DeviceSetGraphMemAttribute, device, attr, value);
}
