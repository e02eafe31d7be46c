// Devices: names, sizes, attributes, identities.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver.h"

using namespace simgpu;

bool simgpu::can_access_peer(const Device* device, const Device* peer) {
  // Between cards of one kind, and GeForce cards not at all.
  return device != peer && std::strcmp(device->model.key, peer->model.key) == 0 &&
         std::strstr(device->model.name, "GeForce") == nullptr;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  Device* found;
  SIMGPU_TRY(find_device(ordinal, found));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  SIMGPU_TRY(require_init());
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(driver().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", device->model.name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned char bytes[16];
  device_uuid(device->model.index, bytes);
  std::memcpy(uuid->bytes, bytes, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  return cuDeviceGetUuid_v2(uuid, ordinal);
}

CUresult cuDeviceGetLuid(char*, unsigned int*, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  return CUDA_ERROR_NOT_SUPPORTED;  // Windows only
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->model.total_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return device_attribute(device->model, attribute, value);
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = device->model.major;
  *minor = device->model.minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->sharedMemPerBlock = 49152;
  properties->totalConstantMemory = 65536;
  properties->SIMDWidth = 32;
  properties->memPitch = 2147483647;
  properties->regsPerBlock = 65536;
  properties->clockRate = device->model.clock_khz;
  properties->textureAlign = 512;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device->model.index + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  SIMGPU_TRY(require_init());
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& known : driver().devices)
    if (domain == 0 && slot == 0 && bus == static_cast<unsigned>(known->model.index) + 1) {
      *device = known->ordinal;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer_ordinal) {
  Device* device;
  Device* peer;
  SIMGPU_TRY(find_device(ordinal, device));
  SIMGPU_TRY(find_device(peer_ordinal, peer));
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = can_access_peer(device, peer) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice destination) {
  Device* device;
  Device* peer;
  SIMGPU_TRY(find_device(source, device));
  SIMGPU_TRY(find_device(destination, peer));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == peer) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      *value = 0;
      break;
    default:
      *value = can_access_peer(device, peer) ? 1 : 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned,
                                            CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (width == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *width = 268435456;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int* capabilities,
                                           const CUatomicOperation* operations, unsigned int count,
                                           CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (capabilities == nullptr || operations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::fill_n(capabilities, count, 0U);  // as on a card behind PCI Express without native atomics
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities,
                                          const CUatomicOperation* operations, unsigned int count,
                                          CUdevice source, CUdevice destination) {
  Device* device;
  SIMGPU_TRY(find_device(destination, device));
  if (source == destination) return CUDA_ERROR_INVALID_DEVICE;
  return cuDeviceGetHostAtomicCapabilities(capabilities, operations, count, source);
}
