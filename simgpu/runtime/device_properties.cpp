// cudaDeviceProp, filled from the driver's attributes by one table.
#include <cstddef>
#include <cstring>

#include "runtime/call.h"

using namespace simgpu;

static_assert(CUDART_VERSION < 13000 || sizeof(cudaDeviceProp) == 1008);

namespace {

struct Property {
  size_t offset;
  CUdevice_attribute attribute;
};

#define FIELD(field, attribute) \
  { offsetof(cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##attribute }

const Property int_properties[] = {
    FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    FIELD(warpSize, WARP_SIZE),
    FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    FIELD(maxGridSize[0], MAX_GRID_DIM_X),
    FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
    FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
    FIELD(major, COMPUTE_CAPABILITY_MAJOR),
    FIELD(minor, COMPUTE_CAPABILITY_MINOR),
    FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
    FIELD(integrated, INTEGRATED),
    FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    FIELD(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    FIELD(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    FIELD(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    FIELD(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    FIELD(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    FIELD(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    FIELD(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    FIELD(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    FIELD(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    FIELD(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    FIELD(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    FIELD(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    FIELD(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    FIELD(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    FIELD(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    FIELD(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    FIELD(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    FIELD(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
    FIELD(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
    FIELD(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
    FIELD(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
    FIELD(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
    FIELD(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    FIELD(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    FIELD(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    FIELD(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    FIELD(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    FIELD(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    FIELD(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    FIELD(concurrentKernels, CONCURRENT_KERNELS),
    FIELD(ECCEnabled, ECC_ENABLED),
    FIELD(pciBusID, PCI_BUS_ID),
    FIELD(pciDeviceID, PCI_DEVICE_ID),
    FIELD(pciDomainID, PCI_DOMAIN_ID),
    FIELD(tccDriver, TCC_DRIVER),
    FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
    FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
    FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    FIELD(l2CacheSize, L2_CACHE_SIZE),
    FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    FIELD(managedMemory, MANAGED_MEMORY),
    FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
    FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
    FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
    FIELD(clusterLaunch, CLUSTER_LAUNCH),
    FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
#if CUDART_VERSION >= 13000
    FIELD(deviceNumaConfig, NUMA_CONFIG),
    FIELD(deviceNumaId, NUMA_ID),
    FIELD(mpsEnabled, MPS_ENABLED),
    FIELD(hostNumaId, HOST_NUMA_ID),
    FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#else
    FIELD(clockRate, CLOCK_RATE),
    FIELD(memoryClockRate, MEMORY_CLOCK_RATE),
    FIELD(computeMode, COMPUTE_MODE),
    FIELD(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    FIELD(deviceOverlap, GPU_OVERLAP),
    FIELD(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    FIELD(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
#endif
};

const Property size_properties[] = {
    FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    FIELD(memPitch, MAX_PITCH),
    FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
    FIELD(textureAlignment, TEXTURE_ALIGNMENT),
    FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
    FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
};

#undef FIELD

// An attribute that the driver does not know stays zero: a property is never a reason to fail.
template <class Number, class Table>
void fill(cudaDeviceProp* properties, const Table& table, int device) {
  for (const auto& property : table) {
    int value = 0;
    if (call(&DriverTable::DeviceGetAttribute, &value, property.attribute, device) != cudaSuccess) {
      continue;
    }
    const Number number = static_cast<Number>(value);
    std::memcpy(reinterpret_cast<char*>(properties) + property.offset, &number, sizeof number);
  }
}

cudaError_t get_properties(cudaDeviceProp* properties, int device) {
  cudaError_t error = enter_driver();
  if (error == cudaSuccess && properties == nullptr) error = cudaErrorInvalidValue;
  if (error != cudaSuccess) return error;
  CUdevice handle = 0;
  error = call(&DriverTable::DeviceGet, &handle, device);
  if (error != cudaSuccess) return error;
  std::memset(properties, 0, sizeof *properties);
  call(&DriverTable::DeviceGetName, properties->name, static_cast<int>(sizeof properties->name),
       handle);
  call(&DriverTable::DeviceGetUuid, &properties->uuid, handle);
  call(&DriverTable::DeviceTotalMem, &properties->totalGlobalMem, handle);
  fill<int>(properties, int_properties, handle);
  fill<size_t>(properties, size_properties, handle);
  return cudaSuccess;
}

// How many of the asked-for properties a device has; a property left zero was not asked for.
int score(const cudaDeviceProp& wanted, const cudaDeviceProp& device) {
  int points = 0;
  points += wanted.major == 0 || device.major == wanted.major ? 2 : 0;
  points += device.major > wanted.major ? 1 : 0;
  points += device.totalGlobalMem >= wanted.totalGlobalMem ? 1 : 0;
  points += device.multiProcessorCount >= wanted.multiProcessorCount ? 1 : 0;
  points += std::strcmp(wanted.name, device.name) == 0 ? 4 : 0;
  return points;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return record(get_properties(prop, device));
}

#if CUDART_VERSION < 13000
// The header renames the function above to _v2; programs built before CUDA 12 import the plain name
// with a shorter structure, which ends where the fields of CUDA 12 begin.
#undef cudaGetDeviceProperties
SIMGPU_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  cudaDeviceProp whole;
  const cudaError_t error = get_properties(&whole, device);
  if (error != cudaSuccess) return record(error);
  constexpr size_t kOldSize = offsetof(cudaDeviceProp, hostRegisterSupported);
  std::memcpy(static_cast<void*>(prop), &whole, kOldSize);
  return cudaSuccess;
}
#endif

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* prop) {
  cudaError_t error = enter_driver();
  if (error == cudaSuccess && (device == nullptr || prop == nullptr)) error = cudaErrorInvalidValue;
  int count = 0;
  if (error == cudaSuccess) error = call(&DriverTable::DeviceGetCount, &count);
  int best = -1;
  for (int i = 0; error == cudaSuccess && i < count; ++i) {
    cudaDeviceProp candidate;
    error = get_properties(&candidate, i);
    if (error == cudaSuccess && score(*prop, candidate) > best) {
      best = score(*prop, candidate);
      *device = i;
    }
  }
  return record(error);
}
