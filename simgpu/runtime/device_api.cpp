// Devices, limits, peers, versions: everything that is about a device and not about memory.
#include "runtime/call.h"

#include <cstring>

using namespace simgpu;

cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t error = in_driver(&DriverTable::DeviceGetCount, count);
  if (error != cudaSuccess) {
    if (count != nullptr) *count = 0;
    return error;
  }
  return *count == 0 ? record(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return record(set_device(device));
}

cudaError_t cudaGetDevice(int* device) {
  return record(current_device(device));
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(cudaInitDeviceFlagsAreValid)) != 0) {
    return record(cudaErrorInvalidValue);
  }
  if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
    const cudaError_t error =
        in_driver(&DriverTable::DevicePrimaryCtxSetFlags, device, deviceFlags);
    if (error != cudaSuccess) return error;
  }
  cudaError_t error = enter_driver();
  CUcontext context = nullptr;
  if (error == cudaSuccess) error = primary_context(device, &context);
  return record(error);
}

cudaError_t cudaSetValidDevices(int* device_arr, int len) {
  cudaError_t error = enter_driver();
  int count = 0;
  if (error == cudaSuccess) error = call(&DriverTable::DeviceGetCount, &count);
  if (error == cudaSuccess && (len < 0 || (device_arr == nullptr && len > 0))) {
    error = cudaErrorInvalidValue;
  }
  for (int i = 0; error == cudaSuccess && i < len; ++i) {
    if (device_arr[i] < 0 || device_arr[i] >= count) error = cudaErrorInvalidDevice;
  }
  return record(error);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  int device = 0;
  const cudaError_t error = current_device(&device);
  return error != cudaSuccess ? record(error)
                              : in_driver(&DriverTable::DevicePrimaryCtxSetFlags, device, flags);
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  int device = 0;
  const cudaError_t error = current_device(&device);
  if (error != cudaSuccess) return record(error);
  int active = 0;
  return in_driver(&DriverTable::DevicePrimaryCtxGetState, device, flags, &active);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  return in_driver(&DriverTable::DeviceGetAttribute, value, attr, device);
}

cudaError_t cudaDeviceReset(void) {
  return record(reset_current_device());
}

cudaError_t cudaDeviceSynchronize(void) {
  return in_context(&DriverTable::CtxSynchronize);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return in_context(&DriverTable::CtxSetLimit, limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t* pValue, cudaLimit limit) {
  return in_context(&DriverTable::CtxGetLimit, pValue, limit);
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* pCacheConfig) {
  return in_context(&DriverTable::CtxGetCacheConfig, pCacheConfig);
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache cacheConfig) {
  return in_context(&DriverTable::CtxSetCacheConfig, cacheConfig);
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* pConfig) {
  return in_context(&DriverTable::CtxGetSharedMemConfig, pConfig);
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return in_context(&DriverTable::CtxSetSharedMemConfig, config);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return in_context(&DriverTable::CtxGetStreamPriorityRange, leastPriority, greatestPriority);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  return in_context(&DriverTable::CtxResetPersistingL2Cache);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  return in_driver(&DriverTable::DeviceGetByPCIBusId, device, pciBusId);
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return in_driver(&DriverTable::DeviceGetPCIBusId, pciBusId, len, device);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attr, int srcDevice,
                                      int dstDevice) {
  return in_driver(&DriverTable::DeviceGetP2PAttribute, value, attr, srcDevice, dstDevice);
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  return in_driver(&DriverTable::DeviceCanAccessPeer, canAccessPeer, device, peerDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  cudaError_t error = enter_context();
  CUcontext peer = nullptr;
  if (error == cudaSuccess) error = primary_context(peerDevice, &peer);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::CtxEnablePeerAccess, peer, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  cudaError_t error = enter_context();
  CUcontext peer = nullptr;
  if (error == cudaSuccess) error = primary_context(peerDevice, &peer);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::CtxDisablePeerAccess, peer);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  return in_context(&DriverTable::FlushGPUDirectRDMAWrites, target, scope);
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return record(cudaErrorInvalidValue);
  *driverVersion = 0;  // what is documented where no driver is installed
  if (driver().plain.DriverGetVersion == nullptr) return cudaSuccess;
  return record(call(&DriverTable::DriverGetVersion, driverVersion));
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (runtimeVersion == nullptr) return record(cudaErrorInvalidValue);
  *runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}

// Declared in a header of its own, which not every package of headers has.
SIMGPU_EXPORT cudaError_t cudaProfilerStart(void) {
  return in_context(&DriverTable::ProfilerStart);
}

SIMGPU_EXPORT cudaError_t cudaProfilerStop(void) {
  return in_context(&DriverTable::ProfilerStop);
}

#if CUDART_VERSION < 13000
// Names of CUDA 3, which CUDA 12 still has.
cudaError_t cudaThreadExit(void) {
  return cudaDeviceReset();
}

cudaError_t cudaThreadSynchronize(void) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}

cudaError_t cudaThreadGetLimit(size_t* pValue, cudaLimit limit) {
  return cudaDeviceGetLimit(pValue, limit);
}

cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* pCacheConfig) {
  return cudaDeviceGetCacheConfig(pCacheConfig);
}

cudaError_t cudaThreadSetCacheConfig(cudaFuncCache cacheConfig) {
  return cudaDeviceSetCacheConfig(cacheConfig);
}

// Doubles need no conversion since compute capability 1.3.
cudaError_t cudaSetDoubleForDevice(double*) {
  return cudaSuccess;
}

cudaError_t cudaSetDoubleForHost(double*) {
  return cudaSuccess;
}
#endif
