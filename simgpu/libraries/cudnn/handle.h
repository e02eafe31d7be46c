// What a cuDNN handle holds.
#pragma once

namespace simgpu {

struct CudnnHandle {
  void* stream;
};

}  // namespace simgpu
