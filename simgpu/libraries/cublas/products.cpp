// Products of one type: nothing is computed, but the launch carries the matrices it is about, and
// the workspace.
#include "common/driver.h"
#include "common/entry.h"
#include "cublas/handle.h"

namespace {

using simgpu::CublasHandle;

int multiply(const CublasHandle* handle, simgpu::LibraryKernel& kernel, const void* a,
             const void* b, const void* c) {
  if (!handle) return simgpu::kCublasNotInitialized;
  kernel.launch(handle->stream, {a, b, c, handle->workspace});
  return simgpu::kCublasSuccess;
}

}  // namespace

ENTRY(cublasSgemm_v2)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, const void* b, int,
 const void*, void* c, int) {
  static simgpu::LibraryKernel kernel("cublasSgemm_v2", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasDgemm_v2)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, const void* b, int,
 const void*, void* c, int) {
  static simgpu::LibraryKernel kernel("cublasDgemm_v2", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasCgemm_v2)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, const void* b, int,
 const void*, void* c, int) {
  static simgpu::LibraryKernel kernel("cublasCgemm_v2", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasZgemm_v2)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, const void* b, int,
 const void*, void* c, int) {
  static simgpu::LibraryKernel kernel("cublasZgemm_v2", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasSgemmStridedBatched)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, long long,
 const void* b, int, long long, const void*, void* c, int, long long, int) {
  static simgpu::LibraryKernel kernel("cublasSgemmStridedBatched", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasDgemmStridedBatched)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, long long,
 const void* b, int, long long, const void*, void* c, int, long long, int) {
  static simgpu::LibraryKernel kernel("cublasDgemmStridedBatched", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasCgemmStridedBatched)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, long long,
 const void* b, int, long long, const void*, void* c, int, long long, int) {
  static simgpu::LibraryKernel kernel("cublasCgemmStridedBatched", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasZgemmStridedBatched)
(CublasHandle* handle, int, int, int, int, int, const void*, const void* a, int, long long,
 const void* b, int, long long, const void*, void* c, int, long long, int) {
  static simgpu::LibraryKernel kernel("cublasZgemmStridedBatched", 4);
  return multiply(handle, kernel, a, b, c);
}
ENTRY(cublasSgemv_v2)
(CublasHandle* handle, int, int, int, const void*, const void* a, int, const void* x, int,
 const void*, void* y, int) {
  static simgpu::LibraryKernel kernel("cublasSgemv_v2", 4);
  return multiply(handle, kernel, a, x, y);
}
ENTRY(cublasDgemv_v2)
(CublasHandle* handle, int, int, int, const void*, const void* a, int, const void* x, int,
 const void*, void* y, int) {
  static simgpu::LibraryKernel kernel("cublasDgemv_v2", 4);
  return multiply(handle, kernel, a, x, y);
}
ENTRY(cublasCgemv_v2)
(CublasHandle* handle, int, int, int, const void*, const void* a, int, const void* x, int,
 const void*, void* y, int) {
  static simgpu::LibraryKernel kernel("cublasCgemv_v2", 4);
  return multiply(handle, kernel, a, x, y);
}
ENTRY(cublasZgemv_v2)
(CublasHandle* handle, int, int, int, const void*, const void* a, int, const void* x, int,
 const void*, void* y, int) {
  static simgpu::LibraryKernel kernel("cublasZgemv_v2", 4);
  return multiply(handle, kernel, a, x, y);
}
