// How NVML reaches the stand-in driver: through simgpu.h, found at run time. Figures therefore
// agree with CUDA's, and asking NVML does not initialise CUDA.
#ifndef SIMGPU_NVML_DRIVER_LINK_H
#define SIMGPU_NVML_DRIVER_LINK_H

#include "../simgpu.h"

namespace simgpu {

struct DriverLink {
  decltype(&simgpu_describe_count) describe_count = nullptr;
  decltype(&simgpu_describe) describe = nullptr;
  decltype(&simgpu_get_usage) get_usage = nullptr;

  bool found() const {
    return describe_count != nullptr && describe != nullptr && get_usage != nullptr;
  }
};

// The libcuda.so.1 of the process, else the one beside this library.
const DriverLink& driver_link();

}  // namespace simgpu

#endif  // SIMGPU_NVML_DRIVER_LINK_H
