// launch_benchmark [LAUNCHES [ADDRESSES]]: nanoseconds of CPU time per cuLaunchKernel of a kernel
// with three pointers and a struct of four more, which are given one of ADDRESSES different sets
// of memory in turn. Run alone and under the tracer, it tells what the tracer adds (launches.py).
#include <cuda.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

const char kImage[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry work(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n,\n"
    ".param .align 8 .b8 more[48]) { ret; }\n";

struct More {
  CUdeviceptr pointers[4];
  long count;
  float factor;
};

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "launch_benchmark: CUDA error %d\n", static_cast<int>(result));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 200'000;
  const int different = argc > 2 ? std::atoi(argv[2]) : 1;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction work = nullptr;
  CUdeviceptr memory = 0;
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxSetCurrent(context));
  must(cuModuleLoadData(&module, kImage));
  must(cuModuleGetFunction(&work, module, "work"));
  must(cuMemAlloc(&memory, size_t{1} << 30));
  const auto launch = [&](int number) {
    const CUdeviceptr place = memory + 4096 * static_cast<CUdeviceptr>(number % different);
    CUdeviceptr a = place;
    CUdeviceptr b = place + 512;
    CUdeviceptr c = place + 1024;
    unsigned count = 1000;
    More more{{place + 1536, place + 2048, place + 2560, 0}, 7, 0.5F};
    void* parameters[] = {&a, &b, &c, &count, &more};
    must(cuLaunchKernel(work, 4, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
  };
  for (int i = 0; i < 1000; ++i) launch(i);
  const double begin = thread_ns();
  for (int i = 0; i < launches; ++i) launch(i);
  std::printf("%.1f\n", (thread_ns() - begin) / launches);
  return 0;
}
