// A context on the simulated GPU for one test case: two cards of 8 GiB, every call checked.
#pragma once

#include <cuda.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "simgpu.h"

// Every expected error below is what the CUDA driver API's documentation gives for the call.
#define OK(call) REQUIRE((call) == CUDA_SUCCESS)

namespace vramtrack::test {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = std::size_t{1} << 30;

struct SimulatedContext {
  SimulatedContext() {
    setenv("SIMGPU", "2x 8GiB", 1);
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
  }
  ~SimulatedContext() { cuDevicePrimaryCtxRelease(device); }
  SimulatedContext(const SimulatedContext&) = delete;
  SimulatedContext& operator=(const SimulatedContext&) = delete;

  simgpu_usage usage() const {
    simgpu_usage now{};
    REQUIRE(simgpu_get_usage(device, &now) == 0);
    return now;
  }
  std::size_t free_bytes() const {
    std::size_t free = 0, total = 0;
    OK(cuMemGetInfo(&free, &total));
    return free;
  }

  CUdevice device = 0;
  CUcontext context = nullptr;
};

}  // namespace vramtrack::test
