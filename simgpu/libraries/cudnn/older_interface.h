// What the files of cuDNN's older interface share: descriptors that are plain structures, and
// functions that launch one kernel.
#pragma once

#include <cstdlib>
#include <initializer_list>

#include "common/driver.h"
#include "cudnn/descriptor.h"
#include "cudnn/handle.h"

namespace simgpu {

struct CudnnTensorDescriptor {
  static constexpr int kMaxDimensions = 8;

  int type;  // cudnnDataType_t
  int dimensions;
  int sizes[kMaxDimensions];
  int strides[kMaxDimensions];
};

// A descriptor whose settings nobody asks for.
struct CudnnOpaqueDescriptor {
  int unused;
};

template <class T>
int create_descriptor(T** descriptor) {
  if (!descriptor) return kCudnnBadParamNullPointer;
  *descriptor = static_cast<T*>(std::calloc(1, sizeof(T)));
  return *descriptor ? kCudnnSuccess : kCudnnAllocationFailed;
}

inline int destroy_descriptor(void* descriptor) {
  std::free(descriptor);
  return kCudnnSuccess;
}

inline int accept_setting(const void* descriptor) {
  return descriptor ? kCudnnSuccess : kCudnnBadParamNullPointer;
}

inline int run(CudnnHandle* handle, LibraryKernel& kernel,
               std::initializer_list<const void*> data) {
  if (!handle) return kCudnnBadParamNullPointer;
  kernel.launch(handle->stream, data);
  return kCudnnSuccess;
}

inline void assume(const char* what) {
  if (simgpu_assume) simgpu_assume(what, 1);
}

}  // namespace simgpu
