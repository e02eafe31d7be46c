// Bytes that a program reads back: copies in every form keep them.
#include <cuda_runtime_api.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

void say_equal(const char* what, bool equal) {
  say_raw("value", "\"what\":\"" + std::string(what) +
                       "\",\"expected\":1,\"equal\":" + std::to_string(equal ? 1 : 0));
}

std::vector<unsigned char> pattern(size_t size) {
  std::vector<unsigned char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 3);
  return bytes;
}

void one_dimension() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 4096;
  const std::vector<unsigned char> out = pattern(kBytes);
  std::vector<unsigned char> in(kBytes);
  unsigned char* a = nullptr;
  unsigned char* b = nullptr;
  ALLOCATES(cudaMalloc((void**)&a, kBytes), "device", a, kBytes);
  ALLOCATES(cudaMalloc((void**)&b, kBytes), "device", b, kBytes);
  SUCCEEDS(cudaMemcpy(a, out.data(), kBytes, cudaMemcpyHostToDevice));
  SUCCEEDS(cudaMemcpy(b, a, kBytes, cudaMemcpyDeviceToDevice));
  SUCCEEDS(cudaMemcpyAsync(in.data(), b, kBytes, cudaMemcpyDefault, nullptr));
  SUCCEEDS(cudaStreamSynchronize(nullptr));
  say_equal("1d", in == out);

  SUCCEEDS(cudaMemset(a + 100, 0xab, 50));
  SUCCEEDS(cudaMemcpy(in.data(), a, kBytes, cudaMemcpyDeviceToHost));
  std::vector<unsigned char> expected = out;
  std::memset(expected.data() + 100, 0xab, 50);
  say_equal("set", in == expected);
  FREES(cudaFree(a), "device", a, kBytes);
  FREES(cudaFree(b), "device", b, kBytes);
}

void two_dimensions() {
  VICTIM_FRAME;
  constexpr size_t kWidth = 100;
  constexpr size_t kHeight = 8;
  const std::vector<unsigned char> out = pattern(kWidth * kHeight);
  std::vector<unsigned char> in(kWidth * kHeight);
  void* rows = nullptr;
  size_t pitch = 0;
  ALLOCATES(cudaMallocPitch(&rows, &pitch, kWidth, kHeight), "device", rows, pitch * kHeight);
  SUCCEEDS(cudaMemcpy2D(rows, pitch, out.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
  SUCCEEDS(cudaMemset2D(rows, pitch, 0, 10, 2));
  SUCCEEDS(cudaMemcpy2D(in.data(), kWidth, rows, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  std::vector<unsigned char> expected = out;
  for (size_t row = 0; row < 2; ++row) std::memset(expected.data() + row * kWidth, 0, 10);
  say_equal("2d", in == expected);
  FREES(cudaFree(rows), "device", rows, pitch * kHeight);
}

void three_dimensions() {
  VICTIM_FRAME;
  const cudaExtent extent{24, 6, 4};
  const std::vector<unsigned char> out = pattern(extent.width * extent.height * extent.depth);
  std::vector<unsigned char> in(out.size());
  cudaPitchedPtr box{};
  ALLOCATES(cudaMalloc3D(&box, extent), "device", box.ptr, box.pitch * 6 * 4);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<unsigned char*>(out.data()), 24, 24, 6};
  copy.dstPtr = box;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  SUCCEEDS(cudaMemcpy3D(&copy));
  copy.srcPtr = box;
  copy.dstPtr = {in.data(), 24, 24, 6};
  copy.kind = cudaMemcpyDeviceToHost;
  SUCCEEDS(cudaMemcpy3D(&copy));
  say_equal("3d", in == out);
  FREES(cudaFree(box.ptr), "device", box.ptr, box.pitch * 6 * 4);
}

#if CUDART_VERSION >= 13000
void batch() {
  VICTIM_FRAME;
  constexpr size_t kBytes = 256;
  const std::vector<unsigned char> out = pattern(kBytes);
  std::vector<unsigned char> in(kBytes);
  unsigned char* block = nullptr;
  cudaStream_t stream = nullptr;
  ALLOCATES(cudaMalloc((void**)&block, kBytes), "device", block, kBytes);
  SUCCEEDS(cudaStreamCreate(&stream));
  void* to[] = {block, block + 100};
  const void* from[] = {out.data(), out.data() + 100};
  const size_t sizes[] = {100, kBytes - 100};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  SUCCEEDS(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
  SUCCEEDS(cudaMemcpyAsync(in.data(), block, kBytes, cudaMemcpyDeviceToHost, stream));
  SUCCEEDS(cudaStreamSynchronize(stream));
  say_equal("batch", in == out);
  SUCCEEDS(cudaStreamDestroy(stream));
  FREES(cudaFree(block), "device", block, kBytes);
}
#endif

void events_pass_time() {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  float milliseconds = -1;
  SUCCEEDS(cudaEventCreate(&begin));
  SUCCEEDS(cudaEventCreate(&end));
  SUCCEEDS(cudaEventRecord(begin, nullptr));
  SUCCEEDS(cudaEventRecord(end, nullptr));
  SUCCEEDS(cudaEventSynchronize(end));
  SUCCEEDS(cudaEventElapsedTime(&milliseconds, begin, end));
  say_equal("time-passes", milliseconds > 0);
  SUCCEEDS(cudaEventDestroy(begin));
  SUCCEEDS(cudaEventDestroy(end));
}

}  // namespace

void values() {
  VICTIM_FRAME;
  HERE(one_dimension());
  HERE(two_dimensions());
  HERE(three_dimensions());
#if CUDART_VERSION >= 13000
  HERE(batch());
#endif
  events_pass_time();
}

}  // namespace victims
