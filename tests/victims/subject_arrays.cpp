// Arrays and mipmapped arrays. How many bytes one takes is the driver's to say: the victim asks
// cudaArrayGetMemoryRequirements where the array may be asked, else it gives the texels' sum.
#include <cuda_runtime_api.h>

#include <vector>

#include "subjects.h"
#include "witness.h"

namespace victims {

void arrays() {
  VICTIM_FRAME;
  constexpr size_t kWidth = 256;
  constexpr size_t kHeight = 128;
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  const size_t bytes = kWidth * kHeight * sizeof(float);
  cudaArray_t array = nullptr;
  ALLOCATES(cudaMallocArray(&array, &format, kWidth, kHeight, 0), "array", array, bytes);

  std::vector<float> out(kWidth * kHeight);
  std::vector<float> in(kWidth * kHeight);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i);
  const size_t row = kWidth * sizeof(float);
  SUCCEEDS(cudaMemcpy2DToArray(array, 0, 0, out.data(), row, row, kHeight, cudaMemcpyHostToDevice));
  SUCCEEDS(
      cudaMemcpy2DFromArray(in.data(), row, array, 0, 0, row, kHeight, cudaMemcpyDeviceToHost));
  say_raw("array-copy", "\"expected\":1,\"equal\":" + std::to_string(out == in ? 1 : 0));

  cudaChannelFormatDesc read{};
  cudaExtent extent{};
  unsigned int flags = 0;
  SUCCEEDS(cudaArrayGetInfo(&read, &extent, &flags, array));
  say_raw("array-info", "\"expected\":[256,128,0,32],\"is\":[" + std::to_string(extent.width) +
                            "," + std::to_string(extent.height) + "," +
                            std::to_string(extent.depth) + "," + std::to_string(read.x) + "]");
  FREES(cudaFreeArray(array), "array", array, bytes);

  const cudaExtent volume{64, 32, 16};
  const size_t volume_bytes = volume.width * volume.height * volume.depth * sizeof(float);
  cudaArray_t box = nullptr;
  ALLOCATES(cudaMalloc3DArray(&box, &format, volume, 0), "array", box, volume_bytes);
  FREES(cudaFreeArray(box), "array", box, volume_bytes);

  // Levels of 64x64, 32x32, 16x16 and 8x8 texels.
  const cudaExtent square{64, 64, 0};
  const size_t level_bytes = (64 * 64 + 32 * 32 + 16 * 16 + 8 * 8) * sizeof(float);
  cudaMipmappedArray_t levels = nullptr;
  ALLOCATES(cudaMallocMipmappedArray(&levels, &format, square, 4, 0), "array", levels, level_bytes);
  cudaArray_t level = nullptr;
  SUCCEEDS(cudaGetMipmappedArrayLevel(&level, levels, 1));
  FREES(cudaFreeMipmappedArray(levels), "array", levels, level_bytes);
}

}  // namespace victims
