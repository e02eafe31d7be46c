// What an address is.
#include "memory.h"
#include "tables.h"

using namespace simgpu;

namespace {

template <class T>
void put(void* out, T value) {
  *static_cast<T*>(out) = value;
}

// The driver's answers for an address that it knows.
CUresult attribute_of(const Allocation& allocation, CUdeviceptr pointer,
                      CUpointer_attribute attribute, void* out) {
  Context* context = allocation.context;
  bool host = allocation.is_host();
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put(out, context == nullptr ? nullptr : driver().contexts.handle(context));
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put(out, static_cast<unsigned>(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put(out, pointer);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!allocation.is_real()) return CUDA_ERROR_INVALID_VALUE;
      put(out, reinterpret_cast<void*>(pointer));
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      put(out, allocation.sync_memops ? 1U : 0U);
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      put(out, static_cast<unsigned long long>(allocation.buffer_id));
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put(out, allocation.source == Source::kManaged ? 1U : 0U);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(out, allocation.device == nullptr ? -1 : allocation.device->ordinal);
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      put(out, allocation.source == Source::kDevice ? 1U : 0U);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put(out, CUdeviceptr{allocation.address});
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put(out, std::size_t{allocation.size});
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put(out, 1U);
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put(out, vmm_handle_types(allocation));
      break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      put(out, 0U);
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put(out, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put(out,
          allocation.pool == nullptr ? nullptr : driver().tables->pools.handle(allocation.pool));
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      put(out, std::size_t{allocation.size});
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      put(out, CUdeviceptr{allocation.address});
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put(out, static_cast<unsigned long long>(allocation.buffer_id));
      break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      put(out, 0U);
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

// What cuPointerGetAttributes gives for an address that the driver does not know.
void clear(CUpointer_attribute attribute, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put(out, std::uint64_t{0});
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(out, -2);
      break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      break;
    default:
      put(out, 0U);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto allocation = registry().find(pointer);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  return attribute_of(*allocation, pointer, attribute, out);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  if (attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto allocation = registry().find(pointer);
  for (unsigned i = 0; i < count; ++i) {
    if (out[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    clear(attributes[i], out[i]);
    if (allocation) attribute_of(*allocation, pointer, attributes[i], out[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
    return CUDA_ERROR_INVALID_VALUE;
  bool on = *static_cast<const unsigned*>(value) != 0;
  bool found = registry().change(pointer, [on](Allocation& known) { known.sync_memops = on; });
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- hints about managed memory: accepted, and without effect on any total

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation, unsigned int flags,
                               CUstream stream_handle) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Stream* stream;
  SIMGPU_TRY(find_stream(stream_handle, context, stream));
  auto allocation = registry().find(pointer);
  if (flags != 0 || size == 0 || !allocation || allocation->source != Source::kManaged)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(pointer, size, {CU_MEM_LOCATION_TYPE_DEVICE, device}, 0, stream);
}
CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, CUmem_advise, CUmemLocation) {
  SIMGPU_TRY(require_init());
  auto allocation = registry().find(pointer);
  if (size == 0 || !allocation || allocation->source != Source::kManaged)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(pointer, size, advice, {CU_MEM_LOCATION_TYPE_DEVICE, device});
}
