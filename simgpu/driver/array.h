// Arrays and mipmapped arrays: device memory with a shape. They are laid out row by row; what a
// card adds for its tiling is not simulated.
#ifndef SIMGPU_DRIVER_ARRAY_H
#define SIMGPU_DRIVER_ARRAY_H

#include <cstdint>
#include <vector>

#include "memory.h"

namespace simgpu {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Context* context = nullptr;
  bool owned = true;  // false: a level of a mipmapped array

  std::uint64_t element_bytes() const;
  std::uint64_t row_bytes() const { return shape.Width * element_bytes(); }
  std::uint64_t rows() const { return shape.Height == 0 ? 1 : shape.Height; }
};

struct MipmappedArray {
  std::vector<Array*> levels;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Context* context = nullptr;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ARRAY_H
