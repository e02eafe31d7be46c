// The last error of each thread, as cudaGetLastError and cudaPeekAtLastError see it.
#pragma once

#include "runtime/headers.h"

namespace simgpu {

// Every entry point returns through here: a failure becomes the thread's last error. A success does
// not clear an older failure.
cudaError_t record(cudaError_t error);

// A driver's result has the number of the runtime's error since CUDA 10.1.
inline cudaError_t to_runtime(CUresult result) {
  return static_cast<cudaError_t>(result);
}

// Says once per name, on stderr, that a function is missing, and gives cudaErrorNotSupported.
cudaError_t not_simulated(const char* function);

}  // namespace simgpu
