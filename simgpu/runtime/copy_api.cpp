// Copies and sets of all forms. Compiled twice: the second time the header renames all of it to
// _ptsz and _ptds.
#include "runtime/call.h"
#include "runtime/copy_params.h"
#include "runtime/registry.h"

using namespace simgpu;

namespace {

cudaError_t copy_now(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  const cudaError_t error = enter_context();
  if (error != cudaSuccess || count == 0) return error;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&StreamTable::MemcpyHtoD, to, from, count);
    case cudaMemcpyDeviceToHost:
      return call(&StreamTable::MemcpyDtoH, to, from, count);
    case cudaMemcpyDeviceToDevice:
      return call(&StreamTable::MemcpyDtoD, to, from, count);
    default:
      return call(&StreamTable::Memcpy, to, from, count);
  }
}

cudaError_t copy_on(void* to, const void* from, size_t count, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  const cudaError_t error = enter_context();
  if (error != cudaSuccess || count == 0) return error;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&StreamTable::MemcpyHtoDAsync, to, from, count, stream);
    case cudaMemcpyDeviceToHost:
      return call(&StreamTable::MemcpyDtoHAsync, to, from, count, stream);
    case cudaMemcpyDeviceToDevice:
      return call(&StreamTable::MemcpyDtoDAsync, to, from, count, stream);
    default:
      return call(&StreamTable::MemcpyAsync, to, from, count, stream);
  }
}

cudaError_t copy_rows(const Side& to, const Side& from, size_t width, size_t height,
                      cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy;
  cudaError_t error = enter_context();
  if (error == cudaSuccess) error = to_driver(to, from, width, height, kind, &copy);
  if (error == cudaSuccess && width != 0 && height != 0) {
    error = call(&StreamTable::Memcpy2DUnaligned, &copy);
  }
  return record(error);
}

cudaError_t copy_rows_on(const Side& to, const Side& from, size_t width, size_t height,
                         cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D copy;
  cudaError_t error = enter_context();
  if (error == cudaSuccess) error = to_driver(to, from, width, height, kind, &copy);
  if (error == cudaSuccess && width != 0 && height != 0) {
    error = call(&StreamTable::Memcpy2DAsync, &copy, stream);
  }
  return record(error);
}

Side linear(const void* pointer, size_t pitch) {
  return {pointer, nullptr, pitch, 0, 0};
}

Side array_at(cudaArray_const_t array, size_t x_bytes, size_t y) {
  return {nullptr, array, 0, x_bytes, y};
}

// Where a copy to or from a symbol begins, with the range checked.
cudaError_t symbol_range(const void* symbol, size_t offset, size_t count, char** address) {
  void* base = nullptr;
  size_t size = 0;
  cudaError_t error = enter_context();
  if (error == cudaSuccess) error = find_variable(symbol, &base, &size);
  if (error == cudaSuccess && (offset > size || count > size - offset))
    error = cudaErrorInvalidValue;
  *address = static_cast<char*>(base) + offset;
  return error;
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return record(copy_now(dst, src, count, kind));
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return record(copy_on(dst, src, count, kind, stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  char* address = nullptr;
  const cudaError_t error = symbol_range(symbol, offset, count, &address);
  return record(error != cudaSuccess ? error : copy_now(address, src, count, kind));
}

cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  char* address = nullptr;
  const cudaError_t error = symbol_range(symbol, offset, count, &address);
  return record(error != cudaSuccess ? error : copy_now(dst, address, count, kind));
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  char* address = nullptr;
  const cudaError_t error = symbol_range(symbol, offset, count, &address);
  return record(error != cudaSuccess ? error : copy_on(address, src, count, kind, stream));
}

cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  char* address = nullptr;
  const cudaError_t error = symbol_range(symbol, offset, count, &address);
  return record(error != cudaSuccess ? error : copy_on(dst, address, count, kind, stream));
}

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return copy_rows(linear(dst, dpitch), linear(src, spitch), width, height, kind);
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return copy_rows_on(linear(dst, dpitch), linear(src, spitch), width, height, kind, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src,
                                size_t spitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return copy_rows(array_at(dst, wOffset, hOffset), linear(src, spitch), width, height, kind);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                     const void* src, size_t spitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_rows_on(array_at(dst, wOffset, hOffset), linear(src, spitch), width, height, kind,
                      stream);
}

cudaError_t cudaMemcpy2DFromArray(void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset,
                                  size_t hOffset, size_t width, size_t height,
                                  cudaMemcpyKind kind) {
  return copy_rows(linear(dst, dpitch), array_at(src, wOffset, hOffset), width, height, kind);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* dst, size_t dpitch, cudaArray_const_t src,
                                       size_t wOffset, size_t hOffset, size_t width, size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_rows_on(linear(dst, dpitch), array_at(src, wOffset, hOffset), width, height, kind,
                      stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                     cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  return copy_rows(array_at(dst, wOffsetDst, hOffsetDst), array_at(src, wOffsetSrc, hOffsetSrc),
                   width, height, kind);
}

// The deprecated forms count bytes along one row.
cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src,
                              size_t count, cudaMemcpyKind kind) {
  return copy_rows(array_at(dst, wOffset, hOffset), linear(src, count), count, 1, kind);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src,
                                   size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_rows_on(array_at(dst, wOffset, hOffset), linear(src, count), count, 1, kind, stream);
}

cudaError_t cudaMemcpyFromArray(void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                size_t count, cudaMemcpyKind kind) {
  return copy_rows(linear(dst, count), array_at(src, wOffset, hOffset), count, 1, kind);
}

cudaError_t cudaMemcpyFromArrayAsync(void* dst, cudaArray_const_t src, size_t wOffset,
                                     size_t hOffset, size_t count, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return copy_rows_on(linear(dst, count), array_at(src, wOffset, hOffset), count, 1, kind, stream);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                   cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                   size_t count, cudaMemcpyKind kind) {
  return copy_rows(array_at(dst, wOffsetDst, hOffsetDst), array_at(src, wOffsetSrc, hOffsetSrc),
                   count, 1, kind);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  CUDA_MEMCPY3D copy;
  cudaError_t error = p == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*p, &copy);
  if (error == cudaSuccess) error = call(&StreamTable::Memcpy3D, &copy);
  return record(error);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  CUDA_MEMCPY3D copy;
  cudaError_t error = p == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*p, &copy);
  if (error == cudaSuccess) error = call(&StreamTable::Memcpy3DAsync, &copy, stream);
  return record(error);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  CUDA_MEMCPY3D_PEER copy;
  cudaError_t error = p == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*p, &copy);
  if (error == cudaSuccess) error = call(&StreamTable::Memcpy3DPeer, &copy);
  return record(error);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  CUDA_MEMCPY3D_PEER copy;
  cudaError_t error = p == nullptr ? cudaErrorInvalidValue : enter_context();
  if (error == cudaSuccess) error = to_driver(*p, &copy);
  if (error == cudaSuccess) error = call(&StreamTable::Memcpy3DPeerAsync, &copy, stream);
  return record(error);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attrs, size_t* attrsIdxs,
                                 size_t numAttrs, cudaStream_t stream) {
  return in_context(&StreamTable::MemcpyBatchAsync, dsts, srcs, sizes, count, attrs, attrsIdxs,
                    numAttrs, stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, cudaMemcpy3DBatchOp* opList,
                                   unsigned long long flags, cudaStream_t stream) {
  return in_context(&StreamTable::Memcpy3DBatchAsync, numOps, opList, flags, stream);
}

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
  return in_context(&StreamTable::MemPrefetchAsync, devPtr, count, location, flags, stream);
}

cudaError_t cudaMemPrefetchBatchAsync(void** dptrs, size_t* sizes, size_t count,
                                      cudaMemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                      size_t numPrefetchLocs, unsigned long long flags,
                                      cudaStream_t stream) {
  return in_context(&StreamTable::MemPrefetchBatchAsync, dptrs, sizes, count, prefetchLocs,
                    prefetchLocIdxs, numPrefetchLocs, flags, stream);
}

cudaError_t cudaMemDiscardBatchAsync(void** dptrs, size_t* sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
  return in_context(&StreamTable::MemDiscardBatchAsync, dptrs, sizes, count, flags, stream);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** dptrs, size_t* sizes, size_t count,
                                                cudaMemLocation* prefetchLocs,
                                                size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                                unsigned long long flags, cudaStream_t stream) {
  return in_context(&StreamTable::MemDiscardAndPrefetchBatchAsync, dptrs, sizes, count,
                    prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream);
}
#else
cudaError_t cudaMemcpyBatchAsync(void** dsts, void** srcs, size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                 size_t* failIdx, cudaStream_t stream) {
  return in_context(&StreamTable::MemcpyBatchAsync, dsts, srcs, sizes, count, attrs, attrsIdxs,
                    numAttrs, failIdx, stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, cudaMemcpy3DBatchOp* opList, size_t* failIdx,
                                   unsigned long long flags, cudaStream_t stream) {
  return in_context(&StreamTable::Memcpy3DBatchAsync, numOps, opList, failIdx, flags, stream);
}

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, int dstDevice,
                                 cudaStream_t stream) {
  CUmemLocation location{};
  const bool host = dstDevice == cudaCpuDeviceId;
  location.type = host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = host ? 0 : dstDevice;
  return in_context(&StreamTable::MemPrefetchAsync, devPtr, count, location, 0u, stream);
}

cudaError_t cudaMemPrefetchAsync_v2(const void* devPtr, size_t count, cudaMemLocation location,
                                    unsigned int flags, cudaStream_t stream) {
  return in_context(&StreamTable::MemPrefetchAsync, devPtr, count, location, flags, stream);
}
#endif

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  if (count == 0) return record(enter_context());
  return in_context(&StreamTable::MemsetD8, devPtr, static_cast<unsigned char>(value), count);
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  if (count == 0) return record(enter_context());
  return in_context(&StreamTable::MemsetD8Async, devPtr, static_cast<unsigned char>(value), count,
                    stream);
}

cudaError_t cudaMemset2D(void* devPtr, size_t pitch, int value, size_t width, size_t height) {
  if (width == 0 || height == 0) return record(enter_context());
  return in_context(&StreamTable::MemsetD2D8, devPtr, pitch, static_cast<unsigned char>(value),
                    width, height);
}

cudaError_t cudaMemset2DAsync(void* devPtr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  if (width == 0 || height == 0) return record(enter_context());
  return in_context(&StreamTable::MemsetD2D8Async, devPtr, pitch, static_cast<unsigned char>(value),
                    width, height, stream);
}

// A box is set slice by slice: rows of a slice are `pitch` apart, slices `ysize` rows.
cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent,
                              cudaStream_t stream) {
  cudaError_t error = enter_context();
  if (extent.width == 0 || extent.height == 0) return record(error);
  for (size_t z = 0; error == cudaSuccess && z < extent.depth; ++z) {
    char* slice =
        static_cast<char*>(pitchedDevPtr.ptr) + z * pitchedDevPtr.pitch * pitchedDevPtr.ysize;
    error = call(&StreamTable::MemsetD2D8Async, slice, pitchedDevPtr.pitch,
                 static_cast<unsigned char>(value), extent.width, extent.height, stream);
  }
  return record(error);
}

cudaError_t cudaMemset3D(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent) {
  cudaError_t error = enter_context();
  if (extent.width == 0 || extent.height == 0) return record(error);
  for (size_t z = 0; error == cudaSuccess && z < extent.depth; ++z) {
    char* slice =
        static_cast<char*>(pitchedDevPtr.ptr) + z * pitchedDevPtr.pitch * pitchedDevPtr.ysize;
    error = call(&StreamTable::MemsetD2D8, slice, pitchedDevPtr.pitch,
                 static_cast<unsigned char>(value), extent.width, extent.height);
  }
  return record(error);
}
