// Copies and sets. They only forward unless accesses are recorded (--kernels on).
#include "hooks/capture.h"
#include "hooks/copy_records.h"
#include "hooks/device_ranges.h"
#include "hooks/handlers.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

uint64_t device_part(uint64_t address) {
  return is_device_address(address) ? address : 0;
}

uint64_t address_of(const void* host) {
  return reinterpret_cast<uint64_t>(host);
}

void copied(CUresult result, uint64_t to, uint64_t from, uint64_t bytes, CUstream stream) {
  if (result == CUDA_SUCCESS && config().accesses && !is_captured(stream))
    record_copy(to, from, bytes, reinterpret_cast<uint64_t>(stream), 0);
}

void was_set(CUresult result, uint64_t to, uint64_t bytes, CUstream stream) {
  if (result == CUDA_SUCCESS && config().accesses && !is_captured(stream))
    record_set(to, bytes, reinterpret_cast<uint64_t>(stream), 0);
}

void copied_2d(CUresult result, const CUDA_MEMCPY2D* copy, CUstream stream) {
  if (copy == nullptr) return;
  const bool from_device =
      copy->srcMemoryType == CU_MEMORYTYPE_DEVICE || copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED;
  const bool to_device =
      copy->dstMemoryType == CU_MEMORYTYPE_DEVICE || copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  const uint64_t from =
      from_device ? copy->srcDevice + copy->srcY * copy->srcPitch + copy->srcXInBytes : 0;
  const uint64_t to =
      to_device ? copy->dstDevice + copy->dstY * copy->dstPitch + copy->dstXInBytes : 0;
  copied(result, to, from, copy->WidthInBytes * copy->Height, stream);
}

void copied_3d(CUresult result, const CUDA_MEMCPY3D* copy, CUstream stream) {
  if (copy == nullptr) return;
  copied(result, destination_of(*copy), source_of(*copy),
         copy->WidthInBytes * copy->Height * copy->Depth, stream);
}

}  // namespace

uint64_t source_of(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType != CU_MEMORYTYPE_DEVICE && copy.srcMemoryType != CU_MEMORYTYPE_UNIFIED)
    return 0;
  return copy.srcDevice + (copy.srcZ * copy.srcHeight + copy.srcY) * copy.srcPitch +
         copy.srcXInBytes;
}

uint64_t destination_of(const CUDA_MEMCPY3D& copy) {
  if (copy.dstMemoryType != CU_MEMORYTYPE_DEVICE && copy.dstMemoryType != CU_MEMORYTYPE_UNIFIED)
    return 0;
  return copy.dstDevice + (copy.dstZ * copy.dstHeight + copy.dstY) * copy.dstPitch +
         copy.dstXInBytes;
}

void record_copy(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream, uint64_t graph) {
  Event event{.kind = EventKind::memcpy_call,
              .stream = stream,
              .address = device_part(to),
              .size = bytes,
              .object = graph,
              .extra = device_part(from),
              .flags = graph != 0 ? kEventGraphNode : 0U};
  if (event.address != 0 || event.extra != 0) record(event);
}

void record_set(uint64_t to, uint64_t bytes, uint64_t stream, uint64_t graph) {
  Event event{.kind = EventKind::memset_call,
              .stream = stream,
              .address = device_part(to),
              .size = bytes,
              .object = graph,
              .flags = graph != 0 ? kEventGraphNode : 0U};
  if (event.address != 0) record(event);
}

CUresult copy(const Call& /*call*/, CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t),
              CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const CUresult result = real(to, from, bytes);
  copied(result, to, from, bytes, nullptr);
  return result;
}

CUresult copy_async(const Call& /*call*/,
                    CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream), CUdeviceptr to,
                    CUdeviceptr from, size_t bytes, CUstream stream) {
  const CUresult result = real(to, from, bytes, stream);
  copied(result, to, from, bytes, stream);
  return result;
}

CUresult copy_to_device(const Call& /*call*/, CUresult (*real)(CUdeviceptr, const void*, size_t),
                        CUdeviceptr to, const void* from, size_t bytes) {
  const CUresult result = real(to, from, bytes);
  copied(result, to, address_of(from), bytes, nullptr);
  return result;
}

CUresult copy_to_device_async(const Call& /*call*/,
                              CUresult (*real)(CUdeviceptr, const void*, size_t, CUstream),
                              CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  const CUresult result = real(to, from, bytes, stream);
  copied(result, to, address_of(from), bytes, stream);
  return result;
}

CUresult copy_to_host(const Call& /*call*/, CUresult (*real)(void*, CUdeviceptr, size_t), void* to,
                      CUdeviceptr from, size_t bytes) {
  const CUresult result = real(to, from, bytes);
  copied(result, address_of(to), from, bytes, nullptr);
  return result;
}

CUresult copy_to_host_async(const Call& /*call*/,
                            CUresult (*real)(void*, CUdeviceptr, size_t, CUstream), void* to,
                            CUdeviceptr from, size_t bytes, CUstream stream) {
  const CUresult result = real(to, from, bytes, stream);
  copied(result, address_of(to), from, bytes, stream);
  return result;
}

CUresult copy_peer(const Call& /*call*/,
                   CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t),
                   CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   size_t bytes) {
  const CUresult result = real(to, to_context, from, from_context, bytes);
  copied(result, to, from, bytes, nullptr);
  return result;
}

CUresult copy_peer_async(const Call& /*call*/,
                         CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,
                                          CUstream),
                         CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes, CUstream stream) {
  const CUresult result = real(to, to_context, from, from_context, bytes, stream);
  copied(result, to, from, bytes, stream);
  return result;
}

CUresult copy_2d(const Call& /*call*/, CUresult (*real)(const CUDA_MEMCPY2D*),
                 const CUDA_MEMCPY2D* copy) {
  const CUresult result = real(copy);
  copied_2d(result, copy, nullptr);
  return result;
}

CUresult copy_2d_async(const Call& /*call*/, CUresult (*real)(const CUDA_MEMCPY2D*, CUstream),
                       const CUDA_MEMCPY2D* copy, CUstream stream) {
  const CUresult result = real(copy, stream);
  copied_2d(result, copy, stream);
  return result;
}

CUresult copy_3d(const Call& /*call*/, CUresult (*real)(const CUDA_MEMCPY3D*),
                 const CUDA_MEMCPY3D* copy) {
  const CUresult result = real(copy);
  copied_3d(result, copy, nullptr);
  return result;
}

CUresult copy_3d_async(const Call& /*call*/, CUresult (*real)(const CUDA_MEMCPY3D*, CUstream),
                       const CUDA_MEMCPY3D* copy, CUstream stream) {
  const CUresult result = real(copy, stream);
  copied_3d(result, copy, stream);
  return result;
}

// The sets of one element type, which differ in nothing else.
#define SETS(bits, Value)                                                                          \
  CUresult set_##bits(const Call& /*call*/, CUresult (*real)(CUdeviceptr, Value, size_t),          \
                      CUdeviceptr to, Value value, size_t count) {                                 \
    const CUresult result = real(to, value, count);                                                \
    was_set(result, to, count*((bits) / 8), nullptr);                                              \
    return result;                                                                                 \
  }                                                                                                \
  CUresult set_##bits##_async(const Call& /*call*/,                                                \
                              CUresult (*real)(CUdeviceptr, Value, size_t, CUstream),              \
                              CUdeviceptr to, Value value, size_t count, CUstream stream) {        \
    const CUresult result = real(to, value, count, stream);                                        \
    was_set(result, to, count*((bits) / 8), stream);                                               \
    return result;                                                                                 \
  }                                                                                                \
  CUresult set_2d_##bits(const Call& /*call*/,                                                     \
                         CUresult (*real)(CUdeviceptr, size_t, Value, size_t, size_t),             \
                         CUdeviceptr to, size_t pitch, Value value, size_t width, size_t height) { \
    const CUresult result = real(to, pitch, value, width, height);                                 \
    was_set(result, to, width*((bits) / 8) * height, nullptr);                                     \
    return result;                                                                                 \
  }                                                                                                \
  CUresult set_2d_##bits##_async(                                                                  \
      const Call& /*call*/,                                                                        \
      CUresult (*real)(CUdeviceptr, size_t, Value, size_t, size_t, CUstream), CUdeviceptr to,      \
      size_t pitch, Value value, size_t width, size_t height, CUstream stream) {                   \
    const CUresult result = real(to, pitch, value, width, height, stream);                         \
    was_set(result, to, width*((bits) / 8) * height, stream);                                      \
    return result;                                                                                 \
  }
SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned)
#undef SETS

}  // namespace vramtrack
