// What a cuDNN handle holds.
#pragma once

namespace simgpu {

struct CudnnHandle {
  int device;  // what it holds there is given back with it
  void* stream;
};

}  // namespace simgpu
