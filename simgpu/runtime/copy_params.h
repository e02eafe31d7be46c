// The runtime's descriptions of a copy, turned into the driver's.
//
// Where an array takes part, widths and x offsets count elements of that array; otherwise bytes.
// The driver always counts bytes.
#pragma once

#include "runtime/headers.h"

namespace simgpu {

// Bytes per element of an array; 0 where the handle is bad.
size_t element_size(cudaArray_const_t array);

cudaError_t to_driver(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to);
cudaError_t to_driver(const cudaMemcpy3DPeerParms& from, CUDA_MEMCPY3D_PEER* to);
cudaMemcpy3DParms to_runtime(const CUDA_MEMCPY3D& from);

// One side of a copy of rows.
struct Side {
  const void* pointer = nullptr;
  cudaArray_const_t array = nullptr;
  size_t pitch = 0;
  size_t x_bytes = 0;
  size_t y = 0;
};

cudaError_t to_driver(const Side& to, const Side& from, size_t width_bytes, size_t height,
                      cudaMemcpyKind kind, CUDA_MEMCPY2D* copy);

}  // namespace simgpu
