// Arrays, mipmapped arrays, texture and surface objects.
#include <initializer_list>

#include "runtime/call.h"
#include "runtime/copy_params.h"

using namespace simgpu;

namespace {

bool to_format(const cudaChannelFormatDesc& channels, CUDA_ARRAY3D_DESCRIPTOR* out) {
  const int bits = channels.x;
  switch (channels.f) {
    case cudaChannelFormatKindSigned:
      out->Format = bits == 8    ? CU_AD_FORMAT_SIGNED_INT8
                    : bits == 16 ? CU_AD_FORMAT_SIGNED_INT16
                                 : CU_AD_FORMAT_SIGNED_INT32;
      break;
    case cudaChannelFormatKindUnsigned:
      out->Format = bits == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                    : bits == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                                 : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    case cudaChannelFormatKindFloat:
      if (bits == 8) return false;
      out->Format = bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      break;
    default:
      return false;  // compressed and planar formats
  }
  if (bits != 8 && bits != 16 && bits != 32) return false;
  out->NumChannels = 1;
  for (const int more : {channels.y, channels.z, channels.w}) {
    if (more == 0) break;
    if (more != bits) return false;
    ++out->NumChannels;
  }
  return out->NumChannels != 3;
}

cudaChannelFormatDesc to_channels(const CUDA_ARRAY3D_DESCRIPTOR& from) {
  cudaChannelFormatDesc to{};
  int bits = 32;
  to.f = cudaChannelFormatKindUnsigned;
  switch (from.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      bits = 8;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
      bits = 16;
      break;
    case CU_AD_FORMAT_SIGNED_INT8:
      bits = 8;
      to.f = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_SIGNED_INT16:
      bits = 16;
      to.f = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_SIGNED_INT32:
      to.f = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_HALF:
      bits = 16;
      to.f = cudaChannelFormatKindFloat;
      break;
    case CU_AD_FORMAT_FLOAT:
      to.f = cudaChannelFormatKindFloat;
      break;
    default:
      break;
  }
  to.x = bits;
  to.y = from.NumChannels > 1 ? bits : 0;
  to.z = from.NumChannels > 2 ? bits : 0;
  to.w = from.NumChannels > 3 ? bits : 0;
  return to;
}

cudaError_t describe(const cudaChannelFormatDesc* channels, cudaExtent extent, unsigned int flags,
                     CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  *descriptor = CUDA_ARRAY3D_DESCRIPTOR{};
  if (channels == nullptr) return cudaErrorInvalidValue;
  if (!to_format(*channels, descriptor)) return cudaErrorInvalidChannelDescriptor;
  descriptor->Width = extent.width;
  descriptor->Height = extent.height;
  descriptor->Depth = extent.depth;
  descriptor->Flags = flags;  // the bits have the driver's values
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width,
                            size_t height, unsigned int flags) {
  return cudaMalloc3DArray(array, desc, cudaExtent{width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc,
                              cudaExtent extent, unsigned int flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const cudaError_t error = describe(desc, extent, flags, &descriptor);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::Array3DCreate, array, &descriptor);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  if (array == nullptr) return record(enter_context());
  return in_context(&DriverTable::ArrayDestroy, array);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* mipmappedArray,
                                     const cudaChannelFormatDesc* desc, cudaExtent extent,
                                     unsigned int numLevels, unsigned int flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const cudaError_t error = describe(desc, extent, flags, &descriptor);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::MipmappedArrayCreate, mipmappedArray,
                                           &descriptor, numLevels);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
  if (mipmappedArray == nullptr) return record(enter_context());
  return in_context(&DriverTable::MipmappedArrayDestroy, mipmappedArray);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* levelArray,
                                       cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level) {
  return in_context(&DriverTable::MipmappedArrayGetLevel, levelArray, mipmappedArray, level);
}

namespace {

cudaError_t descriptor_of(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  const cudaError_t error = enter_context();
  return error != cudaSuccess ? error : call(&DriverTable::Array3DGetDescriptor, descriptor, array);
}

}  // namespace

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  const cudaError_t error = descriptor_of(array, &descriptor);
  if (error != cudaSuccess) return record(error);
  if (desc != nullptr) *desc = to_channels(descriptor);
  if (extent != nullptr) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  if (flags != nullptr) *flags = descriptor.Flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  cudaError_t error = desc == nullptr ? cudaErrorInvalidValue : descriptor_of(array, &descriptor);
  if (error == cudaSuccess) *desc = to_channels(descriptor);
  return record(error);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}

cudaError_t cudaArrayGetPlane(cudaArray_t* pPlaneArray, cudaArray_t hArray, unsigned int planeIdx) {
  return in_context(&DriverTable::ArrayGetPlane, pPlaneArray, hArray, planeIdx);
}

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* memoryRequirements,
                                           cudaArray_t array, int device) {
  return in_context(&DriverTable::ArrayGetMemoryRequirements, memoryRequirements, array, device);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* memoryRequirements,
                                                    cudaMipmappedArray_t mipmap, int device) {
  return in_context(&DriverTable::MipmappedArrayGetMemoryRequirements, memoryRequirements, mipmap,
                    device);
}

cudaError_t cudaArrayGetSparseProperties(cudaArraySparseProperties* sparseProperties,
                                         cudaArray_t array) {
  return in_context(&DriverTable::ArrayGetSparseProperties, sparseProperties, array);
}

cudaError_t cudaMipmappedArrayGetSparseProperties(cudaArraySparseProperties* sparseProperties,
                                                  cudaMipmappedArray_t mipmap) {
  return in_context(&DriverTable::MipmappedArrayGetSparseProperties, sparseProperties, mipmap);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements,
                                                 const cudaChannelFormatDesc* fmtDesc, int device) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const cudaError_t error = describe(fmtDesc, cudaExtent{}, 0, &descriptor);
  return error != cudaSuccess
             ? record(error)
             : in_driver(&DriverTable::DeviceGetTexture1DLinearMaxWidth, maxWidthInElements,
                         descriptor.Format, descriptor.NumChannels, device);
}

namespace {

cudaError_t to_driver(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to) {
  *to = CUDA_RESOURCE_DESC{};
  to->resType = static_cast<CUresourcetype>(from.resType);
  CUDA_ARRAY3D_DESCRIPTOR format{};
  switch (from.resType) {
    case cudaResourceTypeArray:
      to->res.array.hArray = convert<CUarray>(from.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      to->res.mipmap.hMipmappedArray = convert<CUmipmappedArray>(from.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      if (!to_format(from.res.linear.desc, &format)) return cudaErrorInvalidChannelDescriptor;
      to->res.linear.devPtr = reinterpret_cast<CUdeviceptr>(from.res.linear.devPtr);
      to->res.linear.format = format.Format;
      to->res.linear.numChannels = format.NumChannels;
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return cudaSuccess;
    case cudaResourceTypePitch2D:
      if (!to_format(from.res.pitch2D.desc, &format)) return cudaErrorInvalidChannelDescriptor;
      to->res.pitch2D.devPtr = reinterpret_cast<CUdeviceptr>(from.res.pitch2D.devPtr);
      to->res.pitch2D.format = format.Format;
      to->res.pitch2D.numChannels = format.NumChannels;
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

CUDA_TEXTURE_DESC to_driver(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  to.flags = (from.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
             (from.normalizedCoords != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
             (from.sRGB != 0 ? CU_TRSF_SRGB : 0u);
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  for (int i = 0; i < 4; ++i) to.borderColor[i] = from.borderColor[i];
  return to;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* pTexObject,
                                    const cudaResourceDesc* pResDesc,
                                    const cudaTextureDesc* pTexDesc,
                                    const cudaResourceViewDesc* pResViewDesc) {
  if (pResDesc == nullptr || pTexDesc == nullptr) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource;
  const cudaError_t error = to_driver(*pResDesc, &resource);
  if (error != cudaSuccess) return record(error);
  const CUDA_TEXTURE_DESC texture = to_driver(*pTexDesc);
  CUDA_RESOURCE_VIEW_DESC view{};
  if (pResViewDesc != nullptr) {
    view.format = static_cast<CUresourceViewFormat>(pResViewDesc->format);
    view.width = pResViewDesc->width;
    view.height = pResViewDesc->height;
    view.depth = pResViewDesc->depth;
    view.firstMipmapLevel = pResViewDesc->firstMipmapLevel;
    view.lastMipmapLevel = pResViewDesc->lastMipmapLevel;
    view.firstLayer = pResViewDesc->firstLayer;
    view.lastLayer = pResViewDesc->lastLayer;
  }
  return in_context(&DriverTable::TexObjectCreate, pTexObject, &resource, &texture,
                    pResViewDesc != nullptr ? &view : nullptr);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject) {
  return in_context(&DriverTable::TexObjectDestroy, texObject);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* pSurfObject,
                                    const cudaResourceDesc* pResDesc) {
  if (pResDesc == nullptr) return record(cudaErrorInvalidValue);
  CUDA_RESOURCE_DESC resource;
  const cudaError_t error = to_driver(*pResDesc, &resource);
  return error != cudaSuccess ? record(error)
                              : in_context(&DriverTable::SurfObjectCreate, pSurfObject, &resource);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
  return in_context(&DriverTable::SurfObjectDestroy, surfObject);
}
