// cupti_launch_benchmark [LAUNCHES]: nanoseconds of CPU time per kernel launch at the driver, all
// threads of the process counted: CUPTI may do its part in another one.
#include <cuda.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace {

double process_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

constexpr char kImage[] =
    ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry benchmark() { ret; }\n";

}  // namespace

int main(int argc, char** argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 200'000;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cuModuleLoadData(&module, kImage) != CUDA_SUCCESS ||
      cuModuleGetFunction(&function, module, "benchmark") != CUDA_SUCCESS ||
      cuMemAlloc(&memory, 1 << 20) != CUDA_SUCCESS)
    return 1;
  const auto launch = [&] {
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  };
  for (int i = 0; i < 1000; ++i)
    if (launch() != CUDA_SUCCESS) return 1;
  const double begin = process_ns();
  for (int i = 0; i < launches; ++i) launch();
  std::printf("%.1f\n", (process_ns() - begin) / launches);
  return 0;
}
