#include "runtime/error.h"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "runtime/context.h"

namespace simgpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

// After these the context is broken and stays so: the process has to end. They cannot be cleared.
bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

const ErrorText error_texts[] = {
#define ERROR_TEXT(error, text) {error, #error, text},
#include "runtime/error_texts.def"
#undef ERROR_TEXT
};

const ErrorText* text_of(cudaError_t error) {
  for (const ErrorText& entry : error_texts) {
    if (entry.error == error) return &entry;
  }
  return nullptr;
}

}  // namespace

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess && !is_sticky(last_error)) {
    last_error = error;
  }
  return error;
}

cudaError_t not_simulated(const char* function) {
  static std::mutex guard;
  static const char* said[512];
  static size_t count = 0;
  const std::lock_guard<std::mutex> lock(guard);
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(said[i], function) == 0) return cudaErrorNotSupported;
  }
  if (count < sizeof said / sizeof said[0]) said[count++] = function;
  std::fprintf(stderr, "simgpu: not simulated: %s\n", function);
  return cudaErrorNotSupported;
}

// For stubs, which are compiled without the CUDA headers.
int fail_not_simulated(const char* function);
int fail_not_simulated(const char* function) {
  return record(not_simulated(function));
}

}  // namespace simgpu

// Both initialise the driver, like any other call; while that fails, its failure is the answer.
cudaError_t cudaGetLastError(void) {
  const cudaError_t status = simgpu::enter_driver();
  if (status != cudaSuccess) return status;
  const cudaError_t error = simgpu::last_error;
  if (!simgpu::is_sticky(error)) simgpu::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  const cudaError_t status = simgpu::enter_driver();
  return status != cudaSuccess ? status : simgpu::last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const simgpu::ErrorText* entry = simgpu::text_of(error);
  return entry != nullptr ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const simgpu::ErrorText* entry = simgpu::text_of(error);
  return entry != nullptr ? entry->text : "unrecognized error code";
}
