// cuMemcpy of every kind. Plain and asynchronous forms differ in what they refuse during capture;
// both are done when they return.
#include <cstring>

#include "activity.h"
#include "array.h"
#include "copy.h"
#include "tables.h"

using namespace simgpu;

namespace {

struct Transfer {
  std::uint64_t to, from;
  std::size_t size;
  Side to_side = Side::kAny, from_side = Side::kAny;
};

CUresult check(const Transfer& transfer) {
  SIMGPU_TRY(check_range(transfer.to, transfer.size, transfer.to_side));
  return check_range(transfer.from, transfer.size, transfer.from_side);
}

CUresult copy_now(const Transfer& transfer) {
  Context* context;
  SIMGPU_TRY(enter(context));
  SIMGPU_TRY(refuse_in_capture());
  SIMGPU_TRY(check(transfer));
  wait_for_host_functions(context->legacy_stream);
  move_bytes(transfer.to, transfer.from, transfer.size);
  tell_copy(context->legacy_stream, transfer.to, transfer.from, transfer.size, 0);
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D described(const Transfer& transfer) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = transfer.from;
  copy.dstDevice = transfer.to;
  copy.WidthInBytes = transfer.size;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUresult copy_on(CUstream handle, const Transfer& transfer) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return capture_copy(stream, described(transfer));
  SIMGPU_TRY(check(transfer));
  move_bytes(transfer.to, transfer.from, transfer.size);
  tell_copy(stream, transfer.to, transfer.from, transfer.size, 0);
  return CUDA_SUCCESS;
}

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// Both ends of a 2D or 3D copy, as an address of the first byte and the distances of rows and
// slices.
struct Box {
  std::uint64_t address = 0;
  std::size_t pitch = 0, slice = 0;
  Side side = Side::kAny;
};

CUresult locate(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array,
                std::size_t x, std::size_t y, std::size_t z, std::size_t pitch, std::size_t height,
                const CUDA_MEMCPY3D& copy, Box& box) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      box.address = address_of(host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      box.address = device;
      box.side = Side::kDevice;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      box.address = device;
      break;
    case CU_MEMORYTYPE_ARRAY: {
      Array* found = driver().tables->arrays.find(array);
      if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      box.address = found->address;
      pitch = found->row_bytes();
      height = found->rows();
      break;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (pitch == 0) pitch = copy.WidthInBytes + x;
  if (height == 0) height = copy.Height + y;
  if (copy.Height > 1 && pitch < copy.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  box.pitch = pitch;
  box.slice = pitch * height;
  box.address += x + y * pitch + z * box.slice;
  return CUDA_SUCCESS;
}

CUresult boxes(const CUDA_MEMCPY3D& copy, Box& from, Box& to) {
  SIMGPU_TRY(locate(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray,
                    copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight, copy,
                    from));
  SIMGPU_TRY(locate(copy.dstMemoryType, const_cast<const void*>(copy.dstHost), copy.dstDevice,
                    copy.dstArray, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch,
                    copy.dstHeight, copy, to));
  std::size_t span_from = (copy.Depth - 1) * from.slice + (copy.Height - 1) * from.pitch;
  std::size_t span_to = (copy.Depth - 1) * to.slice + (copy.Height - 1) * to.pitch;
  SIMGPU_TRY(check_range(from.address, span_from + copy.WidthInBytes, from.side));
  return check_range(to.address, span_to + copy.WidthInBytes, to.side);
}

CUDA_MEMCPY3D widened(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = flat.srcXInBytes;
  copy.srcY = flat.srcY;
  copy.srcMemoryType = flat.srcMemoryType;
  copy.srcHost = flat.srcHost;
  copy.srcDevice = flat.srcDevice;
  copy.srcArray = flat.srcArray;
  copy.srcPitch = flat.srcPitch;
  copy.dstXInBytes = flat.dstXInBytes;
  copy.dstY = flat.dstY;
  copy.dstMemoryType = flat.dstMemoryType;
  copy.dstHost = flat.dstHost;
  copy.dstDevice = flat.dstDevice;
  copy.dstArray = flat.dstArray;
  copy.dstPitch = flat.dstPitch;
  copy.WidthInBytes = flat.WidthInBytes;
  copy.Height = flat.Height;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D without_peers(const CUDA_MEMCPY3D_PEER& peers) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peers.srcXInBytes;
  copy.srcY = peers.srcY;
  copy.srcZ = peers.srcZ;
  copy.srcMemoryType = peers.srcMemoryType;
  copy.srcHost = peers.srcHost;
  copy.srcDevice = peers.srcDevice;
  copy.srcArray = peers.srcArray;
  copy.srcPitch = peers.srcPitch;
  copy.srcHeight = peers.srcHeight;
  copy.dstXInBytes = peers.dstXInBytes;
  copy.dstY = peers.dstY;
  copy.dstZ = peers.dstZ;
  copy.dstMemoryType = peers.dstMemoryType;
  copy.dstHost = peers.dstHost;
  copy.dstDevice = peers.dstDevice;
  copy.dstArray = peers.dstArray;
  copy.dstPitch = peers.dstPitch;
  copy.dstHeight = peers.dstHeight;
  copy.WidthInBytes = peers.WidthInBytes;
  copy.Height = peers.Height;
  copy.Depth = peers.Depth;
  return copy;
}

CUresult copy_box_told(const Stream* stream, const CUDA_MEMCPY3D& copy) {
  SIMGPU_TRY(simgpu::copy_box(copy));
  const auto end = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? address_of(host) : std::uint64_t{device};
  };
  tell_copy(stream, end(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
            end(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
            copy.WidthInBytes * copy.Height * copy.Depth, 0);
  return CUDA_SUCCESS;
}

CUresult copy_box_now(const CUDA_MEMCPY3D* copy) {
  Context* context;
  SIMGPU_TRY(enter(context));
  SIMGPU_TRY(refuse_in_capture());
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_box_told(context->legacy_stream, *copy);
}

CUresult copy_box_on(CUstream handle, const CUDA_MEMCPY3D* copy) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream;
  SIMGPU_TRY(stream_for_work(handle, context, stream));
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    return capture_copy(stream, *copy);
  return copy_box_told(stream, *copy);
}

}  // namespace

CUresult simgpu::copy_box(const CUDA_MEMCPY3D& copy) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  Box from, to;
  SIMGPU_TRY(boxes(copy, from, to));
  bool keep = copy.WidthInBytes * copy.Height * copy.Depth <= Contents::kKeptBytes;
  for (std::size_t z = 0; z < copy.Depth; ++z)
    for (std::size_t y = 0; y < copy.Height; ++y)
      move_bytes(to.address + z * to.slice + y * to.pitch,
                 from.address + z * from.slice + y * from.pitch, copy.WidthInBytes, keep);
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy_now({to, from, size});
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return told("cuMemcpyAsync", [&]() -> CUresult { return copy_on(stream, {to, from, size}); });
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  return told("cuMemcpyHtoD_v2", [&]() -> CUresult {
    return copy_now({to, address_of(from), size, Side::kDevice, Side::kAny});
  });
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return told("cuMemcpyHtoDAsync_v2", [&]() -> CUresult {
    return copy_on(stream, {to, address_of(from), size, Side::kDevice, Side::kAny});
  });
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  return told("cuMemcpyDtoH_v2", [&]() -> CUresult {
    return copy_now({address_of(to), from, size, Side::kAny, Side::kDevice});
  });
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return told("cuMemcpyDtoHAsync_v2", [&]() -> CUresult {
    return copy_on(stream, {address_of(to), from, size, Side::kAny, Side::kDevice});
  });
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return told("cuMemcpyDtoD_v2", [&]() -> CUresult {
    return copy_now({to, from, size, Side::kDevice, Side::kDevice});
  });
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return told("cuMemcpyDtoDAsync_v2", [&]() -> CUresult {
    return copy_on(stream, {to, from, size, Side::kDevice, Side::kDevice});
  });
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
  return told("cuMemcpyPeer", [&]() -> CUresult {
    return copy_now({to, from, size, Side::kDevice, Side::kDevice});
  });
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size,
                           CUstream stream) {
  return told("cuMemcpyPeerAsync", [&]() -> CUresult {
    return copy_on(stream, {to, from, size, Side::kDevice, Side::kDevice});
  });
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return told("cuMemcpy2D_v2", [&]() -> CUresult {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = widened(*copy);
    return copy_box_now(&box);
  });
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return told("cuMemcpy2DUnaligned_v2", [&]() -> CUresult { return cuMemcpy2D_v2(copy); });
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return told("cuMemcpy2DAsync_v2", [&]() -> CUresult {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = widened(*copy);
    return copy_box_on(stream, &box);
  });
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return told("cuMemcpy3D_v2", [&]() -> CUresult { return copy_box_now(copy); });
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return told("cuMemcpy3DAsync_v2", [&]() -> CUresult { return copy_box_on(stream, copy); });
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return told("cuMemcpy3DPeer", [&]() -> CUresult {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = without_peers(*copy);
    return copy_box_now(&box);
  });
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return told("cuMemcpy3DPeerAsync", [&]() -> CUresult {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D box = without_peers(*copy);
    return copy_box_on(stream, &box);
  });
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, CUstream stream) {
  return told("cuMemcpyBatchAsync_v2", [&]() -> CUresult {
    if (to == nullptr || from == nullptr || sizes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) SIMGPU_TRY(copy_on(stream, {to[i], from[i], sizes[i]}));
    return CUDA_SUCCESS;
  });
}
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  return told("cuMemcpyBatchAsync", [&]() -> CUresult {
    if (failed != nullptr) *failed = SIZE_MAX;
    return cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indices, attribute_count,
                                 stream);
  });
}

// ---- arrays, one dimension

namespace {

CUresult array_address(CUarray handle, size_t offset, size_t size, std::uint64_t& address) {
  SIMGPU_TRY(require_init());
  Array* array = driver().tables->arrays.find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset > array->size || size > array->size - offset) return CUDA_ERROR_INVALID_VALUE;
  address = array->address + offset;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
  return told("cuMemcpyDtoA_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(to, offset, size, address));
    return copy_now({address, from, size});
  });
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
  return told("cuMemcpyAtoD_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(from, offset, size, address));
    return copy_now({to, address, size});
  });
}
CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t size) {
  return told("cuMemcpyHtoA_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(to, offset, size, address));
    return copy_now({address, address_of(from), size});
  });
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t size) {
  return told("cuMemcpyAtoH_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(from, offset, size, address));
    return copy_now({address_of(to), address, size});
  });
}
CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                         size_t size) {
  return told("cuMemcpyAtoA_v2", [&]() -> CUresult {
    std::uint64_t to_address, from_address;
    SIMGPU_TRY(array_address(to, to_offset, size, to_address));
    SIMGPU_TRY(array_address(from, from_offset, size, from_address));
    return copy_now({to_address, from_address, size});
  });
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t size,
                              CUstream stream) {
  return told("cuMemcpyHtoAAsync_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(to, offset, size, address));
    return copy_on(stream, {address, address_of(from), size});
  });
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t size, CUstream stream) {
  return told("cuMemcpyAtoHAsync_v2", [&]() -> CUresult {
    std::uint64_t address;
    SIMGPU_TRY(array_address(from, offset, size, address));
    return copy_on(stream, {address_of(to), address, size});
  });
}
