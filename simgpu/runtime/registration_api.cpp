// What nvcc's generated code calls: registration, and the configuration between <<< and >>>.
#include <new>

#include "runtime/call.h"
#include "runtime/registry.h"

using namespace simgpu;

namespace {

// nvcc's code carries the handle as void**.
FatBinary* from_handle(void** handle) {
  return reinterpret_cast<FatBinary*>(handle);
}

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// Arguments of a launch may themselves launch, so configurations nest; deeper than this nobody
// does.
constexpr int kDeepest = 32;

// Trivial, so that it needs no destructor at thread exit.
struct ConfigurationStack {
  alignas(LaunchConfiguration) unsigned char entries[kDeepest][sizeof(LaunchConfiguration)];
  int depth;
};

thread_local ConfigurationStack configurations;

}  // namespace

SIMGPU_EXPORT void** __cudaRegisterFatBinary(void* fatCubin) {
  return reinterpret_cast<void**>(register_binary(fatCubin));
}

SIMGPU_EXPORT void __cudaRegisterFatBinaryEnd(void**) {
}

SIMGPU_EXPORT void __cudaUnregisterFatBinary(void** fatCubinHandle) {
  if (fatCubinHandle != nullptr) unregister_binary(from_handle(fatCubinHandle));
}

SIMGPU_EXPORT void __cudaRegisterFunction(void** fatCubinHandle, const char* hostFun, char*,
                                          const char* deviceName, int, uint3*, uint3*, dim3*, dim3*,
                                          int*) {
  register_function(from_handle(fatCubinHandle), hostFun, deviceName);
}

SIMGPU_EXPORT void __cudaRegisterVar(void** fatCubinHandle, char* hostVar, char*,
                                     const char* deviceName, int, size_t size, int, int) {
  register_variable({from_handle(fatCubinHandle), hostVar, deviceName, size, false});
}

SIMGPU_EXPORT void __cudaRegisterManagedVar(void** fatCubinHandle, void** hostVarPtrAddress, char*,
                                            const char* deviceName, int, size_t size, int, int) {
  register_variable({from_handle(fatCubinHandle), hostVarPtrAddress, deviceName, size, true});
}

SIMGPU_EXPORT char __cudaInitModule(void** fatCubinHandle) {
  return prepare_managed(from_handle(fatCubinHandle)) == cudaSuccess ? 1 : 0;
}

SIMGPU_EXPORT unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                                   struct CUstream_st* stream) {
  ConfigurationStack& stack = configurations;
  if (stack.depth == kDeepest) return record(cudaErrorInvalidConfiguration);
  new (stack.entries[stack.depth++]) LaunchConfiguration{gridDim, blockDim, sharedMem, stream};
  return cudaSuccess;
}

SIMGPU_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* gridDim, dim3* blockDim,
                                                     size_t* sharedMem, void* stream) {
  ConfigurationStack& stack = configurations;
  if (stack.depth == 0) return record(cudaErrorMissingConfiguration);
  const auto* top = reinterpret_cast<const LaunchConfiguration*>(stack.entries[--stack.depth]);
  *gridDim = top->grid;
  *blockDim = top->block;
  *sharedMem = top->shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top->stream;
  return cudaSuccess;
}
