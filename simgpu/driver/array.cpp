#include "array.h"

#include <algorithm>

#include "activity.h"
#include "tables.h"

namespace simgpu {

std::uint64_t Array::element_bytes() const {
  std::uint64_t channel = 1;
  switch (shape.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      channel = 2;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      channel = 4;
      break;
    default:
      break;
  }
  return channel * shape.NumChannels;
}

namespace {

bool known_format(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return true;
    default:
      return false;
  }
}

// Bytes of the shape; false where it is no shape that a card takes.
bool measure(const CUDA_ARRAY3D_DESCRIPTOR& shape, std::uint64_t& bytes) {
  constexpr std::uint64_t kMost = 131072;
  if (shape.Width == 0 || shape.Width > kMost || shape.Height > kMost || shape.Depth > 16384 ||
      (shape.Depth != 0 && shape.Height == 0 && (shape.Flags & CUDA_ARRAY3D_LAYERED) == 0) ||
      (shape.NumChannels != 1 && shape.NumChannels != 2 && shape.NumChannels != 4))
    return false;
  Array probe;
  probe.shape = shape;
  bytes = probe.row_bytes() * probe.rows() * std::max<std::uint64_t>(shape.Depth, 1);
  return true;
}

CUresult create(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& shape, const char* operation) {
  Context* context;
  SIMGPU_TRY(enter(context));
  std::uint64_t bytes = 0;
  if (handle == nullptr || !measure(shape, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!known_format(shape.Format))
    return static_cast<CUresult>(simgpu_not_simulated("CUarray_format"));
  SIMGPU_TRY(refuse_in_capture());
  Array* array = driver().tables->arrays.create();
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result =
      allocate_device(context, bytes, Kind::kArray, Source::kArray, operation, array->address);
  if (result != CUDA_SUCCESS) {
    driver().tables->arrays.destroy(array);
    return result;
  }
  array->shape = shape;
  array->size = bytes;
  array->context = context;
  *handle = driver().tables->arrays.handle(array);
  return CUDA_SUCCESS;
}

CUresult find_array(CUarray handle, Array*& array) {
  SIMGPU_TRY(require_init());
  array = driver().tables->arrays.find(handle);
  return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

void release_range(std::uint64_t address, const char* operation) {
  if (auto found = registry().remove(
          address, [](const Allocation& known) { return known.source == Source::kArray; })) {
    tell_memory(*found, false, nullptr);
    release(*found, operation);
  }
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* shape) {
  return told("cuArrayCreate_v2", [&]() -> CUresult {
    if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full{};
    full.Width = shape->Width;
    full.Height = shape->Height;
    full.Format = shape->Format;
    full.NumChannels = shape->NumChannels;
    return create(handle, full, "cuArrayCreate");
  });
}

CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return told("cuArray3DCreate_v2", [&]() -> CUresult {
    if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return create(handle, *shape, "cuArray3DCreate");
  });
}

CUresult cuArrayDestroy(CUarray handle) {
  return told("cuArrayDestroy", [&]() -> CUresult {
    Array* array;
    SIMGPU_TRY(find_array(handle, array));
    if (!array->owned) return CUDA_ERROR_INVALID_HANDLE;
    release_range(array->address, "cuArrayDestroy");
    driver().tables->arrays.destroy(array);
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* shape, CUarray handle) {
  Array* array;
  SIMGPU_TRY(find_array(handle, array));
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  shape->Width = array->shape.Width;
  shape->Height = array->shape.Height;
  shape->Format = array->shape.Format;
  shape->NumChannels = array->shape.NumChannels;
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  Array* array;
  SIMGPU_TRY(find_array(handle, array));
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *shape = array->shape;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray handle,
                                      CUdevice) {
  Array* array;
  SIMGPU_TRY(find_array(handle, array));
  if (requirements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *requirements = {};
  requirements->size = array->size;
  requirements->alignment = kAllocationAlignment;
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int levels) {
  return told("cuMipmappedArrayCreate", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    std::uint64_t bytes = 0;
    if (handle == nullptr || shape == nullptr || levels == 0 || !measure(*shape, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(refuse_in_capture());
    std::uint64_t longest = std::max({shape->Width, shape->Height, shape->Depth});
    unsigned most = 1;
    while ((longest >> most) != 0) ++most;
    levels = std::min(levels, most);
    // Each level is half of the one before in every dimension.
    std::vector<CUDA_ARRAY3D_DESCRIPTOR> shapes(levels, *shape);
    std::vector<std::uint64_t> sizes(levels);
    std::uint64_t total = 0;
    for (unsigned i = 0; i < levels; ++i) {
      shapes[i].Width = std::max<std::size_t>(shape->Width >> i, 1);
      if (shape->Height != 0) shapes[i].Height = std::max<std::size_t>(shape->Height >> i, 1);
      if (shape->Depth != 0 && (shape->Flags & CUDA_ARRAY3D_LAYERED) == 0)
        shapes[i].Depth = std::max<std::size_t>(shape->Depth >> i, 1);
      measure(shapes[i], sizes[i]);
      total += sizes[i];
    }
    std::uint64_t address = 0;
    SIMGPU_TRY(allocate_device(context, total, Kind::kArray, Source::kArray,
                               "cuMipmappedArrayCreate", address));
    MipmappedArray* mipmap = driver().tables->mipmapped_arrays.create();
    if (mipmap == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    mipmap->address = address;
    mipmap->size = total;
    mipmap->context = context;
    for (unsigned i = 0; i < levels; ++i) {
      Array* level = driver().tables->arrays.create();
      if (level == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
      level->shape = shapes[i];
      level->size = sizes[i];
      level->address = address;
      level->context = context;
      level->owned = false;
      address += sizes[i];
      mipmap->levels.push_back(level);
    }
    *handle = driver().tables->mipmapped_arrays.handle(mipmap);
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayGetLevel(CUarray* handle, CUmipmappedArray mipmap_handle,
                                  unsigned int level) {
  SIMGPU_TRY(require_init());
  MipmappedArray* mipmap = driver().tables->mipmapped_arrays.find(mipmap_handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *handle = driver().tables->arrays.handle(mipmap->levels[level]);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  return told("cuMipmappedArrayDestroy", [&]() -> CUresult {
    SIMGPU_TRY(require_init());
    MipmappedArray* mipmap = driver().tables->mipmapped_arrays.find(handle);
    if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (Array* level : mipmap->levels) driver().tables->arrays.destroy(level);
    release_range(mipmap->address, "cuMipmappedArrayDestroy");
    driver().tables->mipmapped_arrays.destroy(mipmap);
    return CUDA_SUCCESS;
  });
}
