// Device, managed, pinned and registered memory, and arrays.
#include "cupti/witness.h"
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "record/live_blocks.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

void allocated(const Call& call, Memory memory, uint64_t address, uint64_t bytes, int16_t device) {
  see_device(device);
  Event event{.kind = EventKind::physical_alloc,
              .memory = memory,
              .device = device,
              .address = address,
              .size = bytes};
  // Memory ends with its context, at the latest.
  event.extra = reinterpret_cast<uint64_t>(current_context());
  emit(call, event);
  // Pinned memory has tensors on it; of device memory, blocks have.
  if (memory == Memory::pinned) live_block_added(address, bytes, event.stack);
  t_allocated = true;
  sample_memory_if_due();
}

void refused(const Call& call, Memory memory, uint64_t bytes, CUresult result) {
  Event event{.kind = EventKind::physical_failed,
              .memory = memory,
              .device = current_device(),
              .size = bytes,
              .result = result};
  emit(call, event);
  sample_memory();
  flush_cupti();
}

// A free can block while others allocate, and it can fail: both ends are recorded.
template <class Release>
CUresult freed(const Call& call, uint64_t address, Release release) {
  if (address == 0) return release();
  Event begin{.kind = EventKind::physical_free_begin, .address = address};
  emit(call, begin);
  live_block_removed(address);
  const CUresult result = release();
  Event end{.kind = EventKind::physical_free_end, .address = address, .result = result};
  emit_without_stack(call, end);
  return result;
}

uint64_t element_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;
  }
}

// Bytes of the texels. The driver's own layout may take more, and is not told.
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if ((d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0) return 0;
  const auto at_least_one = [](size_t n) { return n == 0 ? uint64_t{1} : uint64_t{n}; };
  return d.Width * at_least_one(d.Height) * at_least_one(d.Depth) * d.NumChannels *
         element_bytes(d.Format);
}

uint64_t mipmap_bytes(CUDA_ARRAY3D_DESCRIPTOR d, unsigned levels) {
  uint64_t total = 0;
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  for (unsigned level = 0; level < levels; ++level) {
    total += array_bytes(d);
    d.Width = d.Width > 1 ? d.Width / 2 : 1;
    if (d.Height > 1) d.Height /= 2;
    if (d.Depth > 1 && !layered) d.Depth /= 2;
  }
  return total;
}

}  // namespace

CUresult mem_alloc(const Call& call, CUresult (*real)(CUdeviceptr*, size_t), CUdeviceptr* pointer,
                   size_t bytes) {
  const CUresult result = real(pointer, bytes);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::device, bytes, result);
  else if (pointer != nullptr)
    allocated(call, Memory::device, *pointer, bytes, current_device());
  return result;
}

CUresult mem_alloc_pitch(const Call& call,
                         CUresult (*real)(CUdeviceptr*, size_t*, size_t, size_t, unsigned),
                         CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                         unsigned element) {
  const CUresult result = real(pointer, pitch, width, height, element);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::device, width * height, result);
  else if (pointer != nullptr && pitch != nullptr)
    allocated(call, Memory::device, *pointer, *pitch * height, current_device());
  return result;
}

CUresult mem_alloc_managed(const Call& call, CUresult (*real)(CUdeviceptr*, size_t, unsigned),
                           CUdeviceptr* pointer, size_t bytes, unsigned flags) {
  const CUresult result = real(pointer, bytes, flags);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::managed, bytes, result);
  else if (pointer != nullptr)
    allocated(call, Memory::managed, *pointer, bytes, current_device());
  return result;
}

CUresult mem_free(const Call& call, CUresult (*real)(CUdeviceptr), CUdeviceptr pointer) {
  return freed(call, pointer, [&] { return real(pointer); });
}

CUresult mem_alloc_host(const Call& call, CUresult (*real)(void**, size_t), void** pointer,
                        size_t bytes) {
  const CUresult result = real(pointer, bytes);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::pinned, bytes, result);
  else if (pointer != nullptr)
    allocated(call, Memory::pinned, reinterpret_cast<uint64_t>(*pointer), bytes, current_device());
  return result;
}

CUresult mem_host_alloc(const Call& call, CUresult (*real)(void**, size_t, unsigned),
                        void** pointer, size_t bytes, unsigned flags) {
  const CUresult result = real(pointer, bytes, flags);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::pinned, bytes, result);
  else if (pointer != nullptr)
    allocated(call, Memory::pinned, reinterpret_cast<uint64_t>(*pointer), bytes, current_device());
  return result;
}

CUresult mem_free_host(const Call& call, CUresult (*real)(void*), void* pointer) {
  return freed(call, reinterpret_cast<uint64_t>(pointer), [&] { return real(pointer); });
}

CUresult mem_host_register(const Call& call, CUresult (*real)(void*, size_t, unsigned),
                           void* pointer, size_t bytes, unsigned flags) {
  const CUresult result = real(pointer, bytes, flags);
  if (result != CUDA_SUCCESS)
    refused(call, Memory::registered, bytes, result);
  else
    allocated(call, Memory::registered, reinterpret_cast<uint64_t>(pointer), bytes,
              current_device());
  return result;
}

CUresult mem_host_unregister(const Call& call, CUresult (*real)(void*), void* pointer) {
  return freed(call, reinterpret_cast<uint64_t>(pointer), [&] { return real(pointer); });
}

CUresult array_create(const Call& call, CUresult (*real)(CUarray*, const CUDA_ARRAY_DESCRIPTOR*),
                      CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  const CUresult result = real(array, descriptor);
  if (descriptor == nullptr) return result;
  const CUDA_ARRAY3D_DESCRIPTOR whole{.Width = descriptor->Width,
                                      .Height = descriptor->Height,
                                      .Format = descriptor->Format,
                                      .NumChannels = descriptor->NumChannels};
  if (result != CUDA_SUCCESS)
    refused(call, Memory::array, array_bytes(whole), result);
  else if (array != nullptr)
    allocated(call, Memory::array, reinterpret_cast<uint64_t>(*array), array_bytes(whole),
              current_device());
  return result;
}

CUresult array_3d_create(const Call& call,
                         CUresult (*real)(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*), CUarray* array,
                         const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  const CUresult result = real(array, descriptor);
  if (descriptor == nullptr) return result;
  if (result != CUDA_SUCCESS)
    refused(call, Memory::array, array_bytes(*descriptor), result);
  else if (array != nullptr)
    allocated(call, Memory::array, reinterpret_cast<uint64_t>(*array), array_bytes(*descriptor),
              current_device());
  return result;
}

CUresult array_destroy(const Call& call, CUresult (*real)(CUarray), CUarray array) {
  return freed(call, reinterpret_cast<uint64_t>(array), [&] { return real(array); });
}

CUresult mipmapped_array_create(
    const Call& call, CUresult (*real)(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned),
    CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned levels) {
  const CUresult result = real(array, descriptor, levels);
  if (descriptor == nullptr) return result;
  if (result != CUDA_SUCCESS)
    refused(call, Memory::array, mipmap_bytes(*descriptor, levels), result);
  else if (array != nullptr)
    allocated(call, Memory::array, reinterpret_cast<uint64_t>(*array),
              mipmap_bytes(*descriptor, levels), current_device());
  return result;
}

CUresult mipmapped_array_destroy(const Call& call, CUresult (*real)(CUmipmappedArray),
                                 CUmipmappedArray array) {
  return freed(call, reinterpret_cast<uint64_t>(array), [&] { return real(array); });
}

}  // namespace vramtrack
