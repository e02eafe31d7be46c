// What libraries keep on the device by estimate: booked with their handles, within the card's size,
// and given back as a library would.
#include "context.h"

namespace vramtrack::test {
namespace {

simgpu_library_estimate estimate_of(int device, const char* library) {
  simgpu_library_estimate estimate{};
  REQUIRE(simgpu_get_library_estimate(device, library, &estimate) == 0);
  return estimate;
}

}  // namespace

TEST_CASE("a library's first handle takes memory of the device, its code stays with the context") {
  SimulatedContext gpu;
  const simgpu_library_estimate blas = estimate_of(gpu.device, "cuBLAS");
  REQUIRE(blas.first_handle > 0);
  REQUIRE(blas.code > 0);
  const std::size_t free = gpu.free_bytes();
  REQUIRE(simgpu_open_library(gpu.device, "cuBLAS", 0) == 0);
  REQUIRE(simgpu_open_library(gpu.device, "cuBLAS", 0) == 0);
  CHECK(gpu.usage().library == blas.first_handle + blas.code);
  CHECK(free - gpu.free_bytes() == blas.first_handle + blas.code);
  CHECK(simgpu_library_bytes(gpu.device) == blas.first_handle + blas.code);
  CHECK(simgpu_library_bytes(1) == 0);
  simgpu_close_library(gpu.device, "cuBLAS", 0);
  CHECK(gpu.usage().library == blas.first_handle + blas.code);
  simgpu_close_library(gpu.device, "cuBLAS", 0);
  CHECK(gpu.usage().library == blas.code);
  REQUIRE(simgpu_open_library(gpu.device, "cuBLAS", 0) == 0);
  CHECK(gpu.usage().library == blas.first_handle + blas.code);
  OK(cuDevicePrimaryCtxReset(gpu.device));
  CHECK(gpu.usage().used == 0);
  simgpu_close_library(gpu.device, "cuBLAS", 0);
  CHECK(gpu.usage().used == 0);
}

TEST_CASE("each communicator takes its own memory, and gives it back") {
  SimulatedContext gpu;
  const simgpu_library_estimate nccl = estimate_of(gpu.device, "NCCL");
  REQUIRE(nccl.each_handle > 0);
  REQUIRE(nccl.channels > 0);
  REQUIRE(simgpu_open_library(gpu.device, "NCCL", 24 * kMiB) == 0);
  REQUIRE(simgpu_open_library(gpu.device, "NCCL", 12 * kMiB) == 0);
  CHECK(gpu.usage().library == 2 * nccl.each_handle + 36 * kMiB);
  simgpu_close_library(gpu.device, "NCCL", 24 * kMiB);
  CHECK(gpu.usage().library == nccl.each_handle + 12 * kMiB);
  simgpu_close_library(gpu.device, "NCCL", 12 * kMiB);
  CHECK(gpu.usage().library == 0);
}

TEST_CASE("a library that does not fit is refused, and memory runs out earlier beside one") {
  SimulatedContext gpu;
  const std::size_t free = gpu.free_bytes();
  const simgpu_library_estimate blas = estimate_of(gpu.device, "cuBLAS");
  CUdeviceptr all = 0;
  OK(cuMemAlloc(&all, free - blas.first_handle - blas.code + 1));
  CHECK(simgpu_open_library(gpu.device, "cuBLAS", 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(gpu.usage().library == 0);
  OK(cuMemFree(all));
  REQUIRE(simgpu_open_library(gpu.device, "cuBLAS", 0) == 0);
  CHECK(cuMemAlloc(&all, free - blas.first_handle - blas.code + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc(&all, free - blas.first_handle - blas.code));
  OK(cuMemFree(all));
  simgpu_close_library(gpu.device, "cuBLAS", 0);
}

TEST_CASE("SIMGPU_LIBRARY_MIB replaces the estimates") {
  SimulatedContext gpu;
  const simgpu_library_estimate usual = estimate_of(gpu.device, "cuDNN");
  setenv("SIMGPU_LIBRARY_MIB", "0", 1);
  for (const char* library : {"cuBLAS", "cuDNN", "NCCL"}) {
    const simgpu_library_estimate none = estimate_of(gpu.device, library);
    CHECK(none.code + none.first_handle + none.each_handle == 0);
    CHECK(none.channels == 0);
  }
  setenv("SIMGPU_LIBRARY_MIB", "cublas:40,nccl:300", 1);
  CHECK(estimate_of(gpu.device, "cuBLAS").first_handle == 40 * kMiB);
  CHECK(estimate_of(gpu.device, "cuBLAS").code == 0);
  CHECK(estimate_of(gpu.device, "NCCL").each_handle == 300 * kMiB);
  CHECK(estimate_of(gpu.device, "cuDNN").code == usual.code);
  unsetenv("SIMGPU_LIBRARY_MIB");
  CHECK(estimate_of(gpu.device, "cuFFT").code == 0);
}

}  // namespace vramtrack::test
