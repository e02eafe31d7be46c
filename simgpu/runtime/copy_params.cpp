#include "runtime/copy_params.h"

#include "runtime/call.h"

namespace simgpu {
namespace {

bool is_known(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

CUmemorytype source_type(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyHostToDevice:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

CUmemorytype destination_type(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDeviceToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

CUarray to_driver(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}

// Memory types host and device differ in which field the address goes to; both are filled.
template <class Copy>
void set_source(Copy& copy, CUmemorytype type, cudaArray_const_t array, const void* pointer) {
  copy.srcMemoryType = array != nullptr ? CU_MEMORYTYPE_ARRAY : type;
  copy.srcArray = to_driver(array);
  copy.srcHost = pointer;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(pointer);
}

template <class Copy>
void set_destination(Copy& copy, CUmemorytype type, cudaArray_const_t array, void* pointer) {
  copy.dstMemoryType = array != nullptr ? CU_MEMORYTYPE_ARRAY : type;
  copy.dstArray = to_driver(array);
  copy.dstHost = pointer;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(pointer);
}

// What cudaMemcpy3DParms and cudaMemcpy3DPeerParms have in common.
template <class From, class To>
cudaError_t convert_3d(const From& from, CUmemorytype source, CUmemorytype destination, To* to) {
  const bool both_source = from.srcArray != nullptr && from.srcPtr.ptr != nullptr;
  const bool both_destination = from.dstArray != nullptr && from.dstPtr.ptr != nullptr;
  if (both_source || both_destination) return cudaErrorInvalidValue;
  *to = To{};
  const cudaArray_const_t counted = from.srcArray != nullptr ? from.srcArray : from.dstArray;
  const size_t unit = counted != nullptr ? element_size(counted) : 1;
  if (unit == 0) return cudaErrorInvalidResourceHandle;
  set_source(*to, source, from.srcArray, from.srcPtr.ptr);
  to->srcXInBytes = from.srcPos.x * (from.srcArray != nullptr ? unit : 1);
  to->srcY = from.srcPos.y;
  to->srcZ = from.srcPos.z;
  to->srcPitch = from.srcPtr.pitch;
  to->srcHeight = from.srcPtr.ysize;
  set_destination(*to, destination, from.dstArray, from.dstPtr.ptr);
  to->dstXInBytes = from.dstPos.x * (from.dstArray != nullptr ? unit : 1);
  to->dstY = from.dstPos.y;
  to->dstZ = from.dstPos.z;
  to->dstPitch = from.dstPtr.pitch;
  to->dstHeight = from.dstPtr.ysize;
  to->WidthInBytes = from.extent.width * unit;
  to->Height = from.extent.height;
  to->Depth = from.extent.depth;
  return cudaSuccess;
}

}  // namespace

size_t element_size(cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (call(&DriverTable::Array3DGetDescriptor, &descriptor, to_driver(array)) != cudaSuccess) {
    return 0;
  }
  size_t bytes = 0;
  switch (descriptor.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      bytes = 1;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      bytes = 2;
      break;
    default:
      bytes = 4;
      break;
  }
  return bytes * descriptor.NumChannels;
}

cudaError_t to_driver(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to) {
  if (!is_known(from.kind)) return cudaErrorInvalidMemcpyDirection;
  return convert_3d(from, source_type(from.kind), destination_type(from.kind), to);
}

cudaError_t to_driver(const cudaMemcpy3DPeerParms& from, CUDA_MEMCPY3D_PEER* to) {
  cudaError_t error = convert_3d(from, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, to);
  if (error == cudaSuccess) error = primary_context(from.srcDevice, &to->srcContext);
  if (error == cudaSuccess) error = primary_context(from.dstDevice, &to->dstContext);
  return error;
}

cudaMemcpy3DParms to_runtime(const CUDA_MEMCPY3D& from) {
  cudaMemcpy3DParms to{};
  const bool from_array = from.srcMemoryType == CU_MEMORYTYPE_ARRAY;
  const bool to_array = from.dstMemoryType == CU_MEMORYTYPE_ARRAY;
  to.srcArray = from_array ? reinterpret_cast<cudaArray_t>(from.srcArray) : nullptr;
  to.dstArray = to_array ? reinterpret_cast<cudaArray_t>(from.dstArray) : nullptr;
  const size_t unit = from_array ? element_size(to.srcArray)
                      : to_array ? element_size(to.dstArray)
                                 : 1;
  const size_t divisor = unit == 0 ? 1 : unit;
  to.srcPos = {from.srcXInBytes / (from_array ? divisor : 1), from.srcY, from.srcZ};
  to.dstPos = {from.dstXInBytes / (to_array ? divisor : 1), from.dstY, from.dstZ};
  if (!from_array) {
    to.srcPtr.ptr = from.srcMemoryType == CU_MEMORYTYPE_HOST
                        ? const_cast<void*>(from.srcHost)
                        : reinterpret_cast<void*>(from.srcDevice);
    to.srcPtr.pitch = from.srcPitch;
    to.srcPtr.ysize = from.srcHeight;
  }
  if (!to_array) {
    to.dstPtr.ptr = from.dstMemoryType == CU_MEMORYTYPE_HOST
                        ? from.dstHost
                        : reinterpret_cast<void*>(from.dstDevice);
    to.dstPtr.pitch = from.dstPitch;
    to.dstPtr.ysize = from.dstHeight;
  }
  to.extent = {from.WidthInBytes / divisor, from.Height, from.Depth};
  const bool host_source = from.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool host_destination = from.dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool unified =
      from.srcMemoryType == CU_MEMORYTYPE_UNIFIED || from.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  to.kind = unified            ? cudaMemcpyDefault
            : host_source      ? (host_destination ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
            : host_destination ? cudaMemcpyDeviceToHost
                               : cudaMemcpyDeviceToDevice;
  return to;
}

cudaError_t to_driver(const Side& to, const Side& from, size_t width_bytes, size_t height,
                      cudaMemcpyKind kind, CUDA_MEMCPY2D* copy) {
  if (!is_known(kind)) return cudaErrorInvalidMemcpyDirection;
  // A pitch may be anything where there is only one row.
  const bool bad_pitch = (from.array == nullptr && height > 1 && from.pitch < width_bytes) ||
                         (to.array == nullptr && height > 1 && to.pitch < width_bytes);
  if (bad_pitch) return cudaErrorInvalidPitchValue;
  *copy = CUDA_MEMCPY2D{};
  set_source(*copy, source_type(kind), from.array, from.pointer);
  copy->srcXInBytes = from.x_bytes;
  copy->srcY = from.y;
  copy->srcPitch = from.pitch;
  set_destination(*copy, destination_type(kind), to.array, const_cast<void*>(to.pointer));
  copy->dstXInBytes = to.x_bytes;
  copy->dstY = to.y;
  copy->dstPitch = to.pitch;
  copy->WidthInBytes = width_bytes;
  copy->Height = height;
  return cudaSuccess;
}

}  // namespace simgpu
