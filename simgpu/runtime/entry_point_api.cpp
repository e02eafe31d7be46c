// Driver functions handed to the program: through cuGetProcAddress, whose answer is passed on
// untouched. Compiled twice: the _ptsz names prefer functions of the per-thread default stream.
#include "runtime/call.h"

using namespace simgpu;

namespace {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr unsigned long long kDefaultFlags = cudaEnablePerThreadDefaultStream;
#else
constexpr unsigned long long kDefaultFlags = cudaEnableDefault;
#endif

cudaError_t entry_point(const char* symbol, void** function, unsigned int version,
                        unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
  const cudaError_t error = enter_driver();
  if (error != cudaSuccess) return error;
  if (flags == cudaEnableDefault) flags = kDefaultFlags;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result =
      driver().get_proc_address(symbol, function, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  // That a name is not there is the status's to say, where it was asked for.
  if (result == CUDA_ERROR_NOT_FOUND) {
    *function = nullptr;
    return status != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
  }
  return to_runtime(result);
}

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** funcPtr, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* driverStatus) {
  return record(entry_point(symbol, funcPtr, CUDART_VERSION, flags, driverStatus));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr,
                                             unsigned int cudaVersion, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* driverStatus) {
  return record(entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus));
}
