// What programs call on the side: profiler switches, log call-backs, old ways to hold a context,
// hints in batches.
#include "memory.h"
#include "tables.h"

using namespace simgpu;

CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuProfilerStart() {
  Context* context;
  return enter(context);
}
CUresult cuProfilerStop() {
  Context* context;
  return enter(context);
}

// The driver's own error log: nothing is ever written to it.
CUresult cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static char registered;
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(&registered);
  return CUDA_SUCCESS;
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle) {
  return CUDA_SUCCESS;
}
CUresult cuLogsCurrent(CUlogIterator* iterator, unsigned int) {
  if (iterator == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *iterator = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* handle, unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = driver().contexts.handle(context);
  return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                    CUflushGPUDirectRDMAWritesScope) {
  Context* context;
  return enter(context);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* pointers, size_t* sizes, size_t count, CUmemLocation*,
                                 size_t*, size_t, unsigned long long flags, CUstream stream) {
  if (pointers == nullptr || sizes == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    SIMGPU_TRY(cuMemPrefetchAsync_v2(pointers[i], sizes[i], {}, 0, stream));
  return CUDA_SUCCESS;
}

namespace {

// No page ever moves, so that no attribute says more than what the allocation was made with.
CUresult range_attribute(void* data, size_t size, CUmem_range_attribute attribute,
                         CUdeviceptr pointer) {
  auto allocation = registry().find(pointer);
  if (data == nullptr || !allocation || allocation->source != Source::kManaged)
    return CUDA_ERROR_INVALID_VALUE;
  if (size < sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      *static_cast<int*>(data) = 0;
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      *static_cast<int*>(data) = CU_DEVICE_INVALID;
      break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      for (size_t i = 0; i < size / sizeof(int); ++i)
        static_cast<int*>(data)[i] = CU_DEVICE_INVALID;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, size_t) {
  SIMGPU_TRY(require_init());
  return range_attribute(data, size, attribute, pointer);
}

CUresult cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr pointer, size_t) {
  SIMGPU_TRY(require_init());
  if (data == nullptr || sizes == nullptr || attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    SIMGPU_TRY(range_attribute(data[i], sizes[i], attributes[i], pointer));
  return CUDA_SUCCESS;
}
