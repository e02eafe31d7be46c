// Attributes, names and parameters of functions and kernels.
//
// ASSUMED where the image cannot be read: 1,024 threads, 32 registers, no static shared or local
// memory, PTX and binary version those of the device.
#include "module.h"
#include "tables.h"

namespace simgpu {

CUresult find_function(CUfunction handle, Function*& function) {
  SIMGPU_TRY(require_init());
  function = driver().tables->functions.find(handle);
  return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

int static_shared_bytes(const Function* function) {
  return function->info != nullptr ? static_cast<int>(function->info->shared_bytes) : 0;
}

int max_threads_per_block(const Function* function) {
  int limit = function->info != nullptr ? static_cast<int>(function->info->max_threads) : 0;
  return limit > 0 && limit <= 1024 ? limit : 1024;
}

int registers_per_thread(const Function* function) {
  int count = function->info != nullptr ? static_cast<int>(function->info->registers) : 0;
  return count > 0 ? count : 32;
}

int max_dynamic_shared_bytes(const Function* function) {
  int set = function->max_dynamic_shared.load(std::memory_order_relaxed);
  if (set < 0 && function->kernel != nullptr)
    set = function->kernel->max_dynamic_shared.load(std::memory_order_relaxed);
  return set >= 0 ? set : 49152 - static_shared_bytes(function);
}

namespace {

CUresult get_attribute(const Function* function, const Device* device,
                       CUfunction_attribute attribute, int* value) {
  const KernelInfo* info = function->info;
  int capability = device->model.major * 10 + device->model.minor;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = max_threads_per_block(function);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_shared_bytes(function);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = info != nullptr ? static_cast<int>(info->constant_bytes) : 0;
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = info != nullptr ? static_cast<int>(info->local_bytes) : 0;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = registers_per_thread(function);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = capability;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = max_dynamic_shared_bytes(function);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function->preferred_carveout;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = function->cluster[0];
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = function->cluster[1];
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = function->cluster[2];
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(Function* function, const Device* device, CUfunction_attribute attribute,
                       int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value + static_shared_bytes(function) > device->model.shared_per_block_optin)
        return CUDA_ERROR_INVALID_VALUE;
      function->max_dynamic_shared = value;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function->preferred_carveout = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      function->cluster[0] = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      function->cluster[1] = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      function->cluster[2] = value;
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult parameter(const Function* function, size_t index, size_t* offset, size_t* size) {
  const std::vector<KernelParameter>* parameters = parameters_of(function);
  if (parameters == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (offset == nullptr || index >= parameters->size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = (*parameters)[index].offset;
  if (size != nullptr) *size = (*parameters)[index].size;
  return CUDA_SUCCESS;
}

CUresult find_kernel(CUkernel handle, Function*& kernel) {
  SIMGPU_TRY(find_function(reinterpret_cast<CUfunction>(handle), kernel));
  return kernel->is_kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Device* any_device() {
  Context* context = current_context();
  return context != nullptr ? context->device : driver().devices.front().get();
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return get_attribute(function, any_device(), attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  return set_attribute(function, any_device(), attribute, value);
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice ordinal) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return get_attribute(kernel, device, attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice ordinal) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  return set_attribute(kernel, device, attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  Function* function;
  return find_function(handle, function);
}
CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  Function* function;
  return find_function(handle, function);
}
CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice ordinal) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  Device* device;
  return find_device(ordinal, device);
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function->kernel != nullptr)
    return cuLibraryGetModule(
        module, reinterpret_cast<CUlibrary>(driver().tables->modules.handle(function->module)));
  *module = driver().tables->modules.handle(function->module);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  return parameter(function, index, offset, size);
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  return parameter(kernel, index, offset, size);
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  Function* kernel;
  SIMGPU_TRY(find_kernel(handle, kernel));
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(driver().tables->modules.handle(kernel->module));
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* handle, CUkernel kernel_handle) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* kernel;
  SIMGPU_TRY(find_kernel(kernel_handle, kernel));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* own;
  SIMGPU_TRY(function_in_context(kernel, context, own));
  *handle = driver().tables->functions.handle(own);
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
  Function* function;
  return find_function(handle, function);
}
