// PyTorch's OffsetCalculator as it lies in a kernel's parameters: the number of dimensions, their
// sizes as dividers of three words each, then for every dimension a stride in bytes per tensor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

class Offsets {
 public:
  static constexpr int kMaxTensors = 4;

  Offsets(const void* calculator, int tensors)
      : bytes_(static_cast<const unsigned char*>(calculator)), tensors_(tensors) {}

  static constexpr std::size_t size(int tensors) {
    return 4 + std::size_t{kMaxDimensions} * (12 + 4 * static_cast<std::size_t>(tensors));
  }

  // Byte offsets of an element in each tensor.
  void find(std::uint32_t element, std::uint64_t* offsets) const;

 private:
  static constexpr int kMaxDimensions = 25;

  const unsigned char* bytes_;
  int tensors_;
};

}  // namespace simgpu
