// cudaLaunchConfig_t as the driver's CUlaunchConfig.
#pragma once

#include "runtime/call.h"

namespace simgpu {
namespace {

[[maybe_unused]] CUlaunchConfig to_driver(const cudaLaunchConfig_t& config) {
  CUlaunchConfig result{};
  result.gridDimX = config.gridDim.x;
  result.gridDimY = config.gridDim.y;
  result.gridDimZ = config.gridDim.z;
  result.blockDimX = config.blockDim.x;
  result.blockDimY = config.blockDim.y;
  result.blockDimZ = config.blockDim.z;
  result.sharedMemBytes = static_cast<unsigned int>(config.dynamicSmemBytes);
  result.hStream = config.stream;
  result.attrs = convert<CUlaunchAttribute*>(config.attrs);
  result.numAttrs = config.numAttrs;
  return result;
}

}  // namespace
}  // namespace simgpu
