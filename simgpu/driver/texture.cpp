// Texture and surface objects, and tensor maps: descriptions for kernels that do not run. The
// objects remember what they were made of; a tensor map is checked and left empty.
#include <cstring>

#include "tables.h"

namespace simgpu {
namespace {

template <class Description>
class ObjectTable {
 public:
  unsigned long long add(const Description& description) {
    std::lock_guard lock(mutex_);
    known_[++last_] = description;
    return last_;
  }
  bool remove(unsigned long long object) {
    std::lock_guard lock(mutex_);
    return known_.erase(object) != 0;
  }
  bool find(unsigned long long object, Description& description) {
    std::lock_guard lock(mutex_);
    auto found = known_.find(object);
    if (found != known_.end()) description = found->second;
    return found != known_.end();
  }

 private:
  std::mutex mutex_;
  unsigned long long last_ = 0;
  std::map<unsigned long long, Description> known_;
};

struct Texture {
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  CUDA_RESOURCE_VIEW_DESC view;
};

ObjectTable<Texture>& textures() {
  static auto* const table = new ObjectTable<Texture>;
  return *table;
}
ObjectTable<CUDA_RESOURCE_DESC>& surfaces() {
  static auto* const table = new ObjectTable<CUDA_RESOURCE_DESC>;
  return *table;
}

CUresult check_resource(const CUDA_RESOURCE_DESC& resource) {
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return driver().tables->arrays.find(resource.res.array.hArray) != nullptr
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_HANDLE;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return driver().tables->mipmapped_arrays.find(resource.res.mipmap.hMipmappedArray) != nullptr
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_HANDLE;
    case CU_RESOURCE_TYPE_LINEAR:
      return registry().find(resource.res.linear.devPtr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D:
      return registry().find(resource.res.pitch2D.devPtr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult empty_map(CUtensorMap* map, cuuint32_t rank, void* address) {
  SIMGPU_TRY(require_init());
  // Alignment and ranks as documented.
  if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0 || rank < 1 || rank > 5 ||
      reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (object == nullptr || resource == nullptr || texture == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(check_resource(*resource));
  *object =
      textures().add({*resource, *texture, view == nullptr ? CUDA_RESOURCE_VIEW_DESC{} : *view});
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject object) {
  SIMGPU_TRY(require_init());
  return textures().remove(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  SIMGPU_TRY(require_init());
  Texture found;
  if (resource == nullptr || !textures().find(object, found)) return CUDA_ERROR_INVALID_VALUE;
  *resource = found.resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  SIMGPU_TRY(require_init());
  Texture found;
  if (texture == nullptr || !textures().find(object, found)) return CUDA_ERROR_INVALID_VALUE;
  *texture = found.texture;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  SIMGPU_TRY(require_init());
  Texture found;
  if (view == nullptr || !textures().find(object, found)) return CUDA_ERROR_INVALID_VALUE;
  *view = found.view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (object == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(check_resource(*resource));
  *object = surfaces().add(*resource);
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject object) {
  SIMGPU_TRY(require_init());
  return surfaces().remove(object) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  SIMGPU_TRY(require_init());
  CUDA_RESOURCE_DESC found;
  if (resource == nullptr || !surfaces().find(object, found)) return CUDA_ERROR_INVALID_VALUE;
  *resource = found;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank,
                                void* address, const cuuint64_t*, const cuuint64_t*,
                                const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  return empty_map(map, rank, address);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank,
                                 void* address, const cuuint64_t*, const cuuint64_t*, const int*,
                                 const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
                                 CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
  return empty_map(map, rank, address);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  SIMGPU_TRY(require_init());
  return map == nullptr || reinterpret_cast<std::uintptr_t>(address) % 16 != 0
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}
