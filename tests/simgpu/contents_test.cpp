// What is copied and set can be read back; what nobody wrote is zero, and counted.
#include <cstring>
#include <numeric>
#include <vector>

#include "context.h"

using namespace vramtrack::test;

namespace {

constexpr const char* kUnknown = "copy to host: bytes that no copy or set had written, as zero";

std::vector<unsigned char> counting(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

}  // namespace

TEST_CASE("small copies keep their bytes") {
  SimulatedContext gpu;
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAlloc(&a, 64 * 1024));
  OK(cuMemAlloc(&b, 64 * 1024));
  const auto sent = counting(10000);
  std::vector<unsigned char> back(10000);
  OK(cuMemcpyHtoD(a + 123, sent.data(), sent.size()));
  OK(cuMemcpyDtoD(b + 4095, a + 123, sent.size()));
  const std::uint64_t assumed = simgpu_assumed(kUnknown);
  OK(cuMemcpyDtoH(back.data(), b + 4095, back.size()));
  CHECK(back == sent);
  CHECK(simgpu_assumed(kUnknown) == assumed);
  OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), a + 124, 100));
  CHECK(std::memcmp(back.data(), sent.data() + 1, 100) == 0);
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

TEST_CASE("unknown bytes read as zero and are counted one by one") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 4096));
  const unsigned value = 0x01020304;
  OK(cuMemcpyHtoD(pointer + 8, &value, 4));
  unsigned char back[16];
  std::memset(back, 0xff, sizeof back);
  const std::uint64_t assumed = simgpu_assumed(kUnknown);
  OK(cuMemcpyDtoH(back, pointer, 16));
  CHECK(simgpu_assumed(kUnknown) == assumed + 12);
  const unsigned char expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1};
  CHECK(std::memcmp(back, expected, 16) == 0);
  unsigned char known[16];
  CHECK(simgpu_read(pointer, known, 16) == 4);
  simgpu_forget(pointer + 8, 2);
  CHECK(simgpu_read(pointer, known, 16) == 2);
  OK(cuMemFree(pointer));
}

TEST_CASE("contents end with their allocation, and where more was written than is kept") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 4 * kMiB));
  const std::vector<unsigned char> ones(4 * kMiB, 1);
  unsigned char byte = 0;
  OK(cuMemcpyHtoD(pointer, ones.data(), kMiB));
  CHECK(simgpu_read(pointer + kMiB - 1, &byte, 1) == 1);
  OK(cuMemcpyHtoD(pointer, ones.data(), kMiB + 1));
  CHECK(simgpu_read(pointer, &byte, 1) == 0);
  OK(cuMemcpyHtoD(pointer, ones.data(), 16));
  OK(cuMemFree(pointer));
  CUdeviceptr again = 0;
  OK(cuMemAlloc(&again, 4 * kMiB));
  CHECK(again == pointer);  // the same place
  CHECK(simgpu_read(again, &byte, 1) == 0);
  OK(cuMemFree(again));
}

TEST_CASE("sets of every width") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 4096));
  OK(cuMemsetD32(pointer, 0xdeadbeef, 4));
  OK(cuMemsetD16(pointer + 4, 0x1234, 2));
  OK(cuMemsetD8(pointer + 15, 7, 1));
  unsigned char back[16];
  OK(cuMemcpyDtoH(back, pointer, 16));
  const unsigned char expected[16] = {0xef, 0xbe, 0xad, 0xde, 0x34, 0x12, 0x34, 0x12,
                                      0xef, 0xbe, 0xad, 0xde, 0xef, 0xbe, 0xad, 7};
  CHECK(std::memcmp(back, expected, 16) == 0);
  CHECK(cuMemsetD32(pointer + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(pointer));
}

TEST_CASE("two-dimensional copies and sets touch their rows only") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  OK(cuMemAllocPitch(&pointer, &pitch, 8, 3, 4));
  OK(cuMemsetD2D8(pointer, pitch, 5, 8, 3));
  const auto sent = counting(6);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = pointer;
  copy.dstPitch = pitch;
  copy.dstXInBytes = 1;
  copy.WidthInBytes = 2;
  copy.Height = 3;
  OK(cuMemcpy2D(&copy));
  for (std::size_t row = 0; row < 3; ++row) {
    unsigned char back[8];
    OK(cuMemcpyDtoH(back, pointer + row * pitch, 8));
    const unsigned char expected[8] = {5, sent[row * 2], sent[row * 2 + 1], 5, 5, 5, 5, 5};
    CHECK(std::memcmp(back, expected, 8) == 0);
  }
  unsigned char byte = 0;
  CHECK(simgpu_read(pointer + 8, &byte, 1) == 0);  // between the rows
  OK(cuMemFree(pointer));
}

TEST_CASE("copies out of bounds are refused") {
  SimulatedContext gpu;
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, 1024));
  char host[2048] = {};
  CHECK(cuMemcpyHtoD(pointer, host, 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(host, pointer + 1024, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host), host, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8(pointer + 1000, 0, 25) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(pointer));
  CHECK(cuMemcpyDtoH(host, pointer, 1) == CUDA_ERROR_INVALID_VALUE);
}
