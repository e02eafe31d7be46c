// Driver functions as frameworks reach them: asked of the runtime by name and version, never
// linked.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "witness.h"

namespace victims {

template <class Function>
Function driver_function(const char* name, unsigned int version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  SUCCEEDS(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) give_up(__FILE__, __LINE__, name, found);
  return reinterpret_cast<Function>(address);
}

}  // namespace victims

// Each spells the name itself: cuda.h renames functions by macros, and the name asked for is the
// plain one.
#define DRIVER_FUNCTION(name) victims::driver_function<decltype(&::name)>(#name, 12000)
#define DRIVER_CALL(name, ...) \
  victims::driver_function<decltype(&::name)>(#name, 12000)(__VA_ARGS__)
