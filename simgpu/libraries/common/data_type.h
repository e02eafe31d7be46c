// Sizes of cudaDataType_t, by number.
#pragma once

#include <cstddef>

namespace simgpu {

constexpr std::size_t data_type_bytes(int type) {
  switch (type) {
    case 0:   // real float
    case 6:   // complex half
    case 10:  // int32
      return 4;
    case 1:   // real double
    case 4:   // complex float
    case 24:  // int64
      return 8;
    case 5:
      return 16;  // complex double
    case 2:       // half
    case 14:      // bfloat16
      return 2;
    default:
      return 1;
  }
}

}  // namespace simgpu
