// Questions about kernels: attributes, occupancy, names, handles.
#include "runtime/call.h"
#include "runtime/launch_config.h"
#include "runtime/registry.h"

using namespace simgpu;

namespace {

cudaError_t find_in_context(const void* function, CUkernel* kernel) {
  const cudaError_t error = enter_context();
  return error != cudaSuccess ? error : find_kernel(function, kernel);
}

// What takes a CUfunction and nothing else.
cudaError_t find_function(const void* symbol, CUfunction* function) {
  CUkernel kernel = nullptr;
  const cudaError_t error = find_in_context(symbol, &kernel);
  return error != cudaSuccess ? error : call(&DriverTable::KernelGetFunction, function, kernel);
}

template <class Number>
void read_attribute(Number& out, CUfunction_attribute attribute, CUkernel kernel, int device) {
  int value = 0;
  if (call(&DriverTable::KernelGetAttribute, &value, attribute, kernel, device) == cudaSuccess) {
    out = static_cast<Number>(value);
  }
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void* func) {
  CUkernel kernel = nullptr;
  int device = 0;
  cudaError_t error = attr == nullptr ? cudaErrorInvalidValue : find_in_context(func, &kernel);
  if (error == cudaSuccess) error = current_device(&device);
  if (error != cudaSuccess) return record(error);
  *attr = cudaFuncAttributes{};
  read_attribute(attr->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, device);
  read_attribute(attr->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, kernel, device);
  read_attribute(attr->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel, device);
  read_attribute(attr->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device);
  read_attribute(attr->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device);
  read_attribute(attr->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel, device);
  read_attribute(attr->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel, device);
  read_attribute(attr->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, kernel, device);
  read_attribute(attr->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                 kernel, device);
  read_attribute(attr->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                 kernel, device);
  read_attribute(attr->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, kernel,
                 device);
  read_attribute(attr->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, kernel,
                 device);
  read_attribute(attr->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, kernel,
                 device);
  read_attribute(attr->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, kernel,
                 device);
  read_attribute(attr->clusterSchedulingPolicyPreference,
                 CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, kernel, device);
  read_attribute(attr->nonPortableClusterSizeAllowed,
                 CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, kernel, device);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  CUkernel kernel = nullptr;
  int device = 0;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess) error = current_device(&device);
  if (error == cudaSuccess) {
    error = call(&DriverTable::KernelSetAttribute, attr, value, kernel, device);
  }
  return record(error);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attr, int value,
                                            int device) {
  return in_context(&DriverTable::KernelSetAttribute, attr, value, kernel, device);
}

cudaError_t cudaFuncSetCacheConfig(const void* func, cudaFuncCache cacheConfig) {
  CUkernel kernel = nullptr;
  int device = 0;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess) error = current_device(&device);
  if (error == cudaSuccess) {
    error = call(&DriverTable::KernelSetCacheConfig, kernel, cacheConfig, device);
  }
  return record(error);
}

// Deprecated and without effect since Volta: only the function is checked.
cudaError_t cudaFuncSetSharedMemConfig(const void* func, cudaSharedMemConfig) {
  CUkernel kernel = nullptr;
  return record(find_in_context(func, &kernel));
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  CUkernel kernel = nullptr;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess) error = call(&DriverTable::KernelGetName, name, kernel);
  return record(error);
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t paramIndex, size_t* paramOffset,
                                 size_t* paramSize) {
  CUkernel kernel = nullptr;
  cudaError_t error = find_in_context(func, &kernel);
  if (error == cudaSuccess) {
    error = call(&DriverTable::KernelGetParamInfo, kernel, paramIndex, paramOffset, paramSize);
  }
  return record(error);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* functionPtr, const void* symbolPtr) {
  if (functionPtr == nullptr) return record(cudaErrorInvalidValue);
  return record(find_function(symbolPtr, functionPtr));
}

namespace {

cudaError_t get_kernel(cudaKernel_t* kernel, const void* host) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  const cudaError_t error = enter_driver();
  return error != cudaSuccess ? error : find_kernel(host, kernel);
}

}  // namespace

cudaError_t cudaGetKernel(cudaKernel_t* kernelPtr, const void* entryFuncAddr) {
  return record(get_kernel(kernelPtr, entryFuncAddr));
}

// nvcc's stubs ask once per kernel and keep the answer.
SIMGPU_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernelPtr, const void* entryFuncAddr) {
  return record(get_kernel(kernelPtr, entryFuncAddr));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* func,
                                                                   int blockSize,
                                                                   size_t dynamicSMemSize,
                                                                   unsigned int flags) {
  CUfunction function = nullptr;
  cudaError_t error = find_function(func, &function);
  if (error == cudaSuccess) {
    error = call(&DriverTable::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks,
                 function, blockSize, dynamicSMemSize, flags);
  }
  return record(error);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func,
                                                          int blockSize, size_t dynamicSMemSize) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                dynamicSMemSize, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const void* func,
                                                      int numBlocks, int blockSize) {
  CUfunction function = nullptr;
  cudaError_t error = find_function(func, &function);
  if (error == cudaSuccess) {
    error = call(&DriverTable::OccupancyAvailableDynamicSMemPerBlock, dynamicSmemSize, function,
                 numBlocks, blockSize);
  }
  return record(error);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* clusterSize, const void* func,
                                                 const cudaLaunchConfig_t* launchConfig) {
  CUfunction function = nullptr;
  cudaError_t error =
      launchConfig == nullptr ? cudaErrorInvalidValue : find_function(func, &function);
  if (error == cudaSuccess) {
    const CUlaunchConfig config = to_driver(*launchConfig);
    error = call(&DriverTable::OccupancyMaxPotentialClusterSize, clusterSize, function, &config);
  }
  return record(error);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* numClusters, const void* func,
                                           const cudaLaunchConfig_t* launchConfig) {
  CUfunction function = nullptr;
  cudaError_t error =
      launchConfig == nullptr ? cudaErrorInvalidValue : find_function(func, &function);
  if (error == cudaSuccess) {
    const CUlaunchConfig config = to_driver(*launchConfig);
    error = call(&DriverTable::OccupancyMaxActiveClusters, numClusters, function, &config);
  }
  return record(error);
}
