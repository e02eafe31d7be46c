#include "kernels/offsets.h"

#include <cstring>

namespace simgpu {

void Offsets::find(std::uint32_t element, std::uint64_t* offsets) const {
  int dimensions;
  std::memcpy(&dimensions, bytes_, sizeof dimensions);
  for (int i = 0; i < tensors_; ++i) offsets[i] = 0;
  for (int d = 0; d < dimensions && d < kMaxDimensions; ++d) {
    std::uint32_t size;
    std::memcpy(&size, bytes_ + 4 + std::ptrdiff_t{12} * d, sizeof size);
    if (size == 0) return;
    for (int i = 0; i < tensors_; ++i) {
      std::uint32_t stride;
      std::memcpy(&stride,
                  bytes_ + 4 + 12 * kMaxDimensions + std::ptrdiff_t{4} * (tensors_ * d + i),
                  sizeof stride);
      offsets[i] += std::uint64_t{element % size} * stride;
    }
    element /= size;
  }
}

}  // namespace simgpu
