// Stream-ordered allocation. The allocations nest in their pools' reserved bytes.
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/pools.h"
#include "hooks/real_functions.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

bool is_capturing(CUstream stream) {
  const DriverCalls& driver = driver_calls();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // The legacy stream cannot be captured, and asking about it during a capture would end that.
  if (stream == nullptr || stream == CU_STREAM_LEGACY || driver.cuStreamIsCapturing == nullptr)
    return false;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUmemoryPool pool_of(CUdeviceptr pointer, int16_t device) {
  const DriverCalls& driver = driver_calls();
  CUmemoryPool pool = nullptr;
  if (driver.cuPointerGetAttribute != nullptr &&
      driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer) ==
          CUDA_SUCCESS &&
      pool != nullptr)
    return pool;
  if (device >= 0 && driver.cuDeviceGetMemPool != nullptr &&
      driver.cuDeviceGetMemPool(&pool, device) == CUDA_SUCCESS)
    return pool;
  return nullptr;
}

void allocated(const Call& call, CUdeviceptr pointer, size_t bytes, CUmemoryPool pool,
               CUstream stream) {
  const bool captured = is_capturing(stream);
  // A node of a graph has an address, but no memory before the graph is launched.
  const int16_t device = captured ? current_device() : device_of_pointer(pointer);
  if (captured) expect_graph_memory();
  if (pool == nullptr && !captured) pool = pool_of(pointer, device);
  if (!captured) see_pool(call, pool, device);
  Event event{.kind = EventKind::physical_alloc,
              .memory = captured ? Memory::graph : Memory::pool,
              .device = device,
              .stream = reinterpret_cast<uint64_t>(stream),
              .address = pointer,
              .size = bytes,
              .object = reinterpret_cast<uint64_t>(pool),
              .flags = captured ? static_cast<uint32_t>(kEventCaptured) : 0U};
  // The pool grew before it could be cut; a reader sees the bytes before what lies in them.
  if (!captured) update_pool(call, pool);
  emit(call, event);
  t_allocated = true;
  if (!captured) sample_memory_if_due();
}

void refused(const Call& call, size_t bytes, CUmemoryPool pool, CUstream stream, CUresult result) {
  Event event{.kind = EventKind::physical_failed,
              .memory = Memory::pool,
              .device = current_device(),
              .stream = reinterpret_cast<uint64_t>(stream),
              .size = bytes,
              .object = reinterpret_cast<uint64_t>(pool),
              .result = result};
  emit(call, event);
  if (!is_capturing(stream)) sample_memory();
}

}  // namespace

CUresult mem_alloc_async(const Call& call, CUresult (*real)(CUdeviceptr*, size_t, CUstream),
                         CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  const CUresult result = real(pointer, bytes, stream);
  if (result != CUDA_SUCCESS)
    refused(call, bytes, nullptr, stream, result);
  else if (pointer != nullptr && bytes != 0)
    allocated(call, *pointer, bytes, nullptr, stream);
  return result;
}

CUresult mem_alloc_from_pool_async(const Call& call,
                                   CUresult (*real)(CUdeviceptr*, size_t, CUmemoryPool, CUstream),
                                   CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                   CUstream stream) {
  const CUresult result = real(pointer, bytes, pool, stream);
  if (result != CUDA_SUCCESS)
    refused(call, bytes, pool, stream, result);
  else if (pointer != nullptr && bytes != 0)
    allocated(call, *pointer, bytes, pool, stream);
  return result;
}

CUresult mem_free_async(const Call& call, CUresult (*real)(CUdeviceptr, CUstream),
                        CUdeviceptr pointer, CUstream stream) {
  if (pointer == 0) return real(pointer, stream);
  const uint32_t flags = is_capturing(stream) ? static_cast<uint32_t>(kEventCaptured) : 0U;
  Event begin{.kind = EventKind::physical_free_begin,
              .stream = reinterpret_cast<uint64_t>(stream),
              .address = pointer,
              .flags = flags};
  emit(call, begin);
  const CUresult result = real(pointer, stream);
  Event end{.kind = EventKind::physical_free_end,
            .stream = reinterpret_cast<uint64_t>(stream),
            .address = pointer,
            .result = result,
            .flags = flags};
  emit_without_stack(call, end);
  if (flags == 0) update_all_pools(call);
  return result;
}

CUresult mem_pool_create(const Call& call, CUresult (*real)(CUmemoryPool*, const CUmemPoolProps*),
                         CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const CUresult result = real(pool, properties);
  if (result == CUDA_SUCCESS && pool != nullptr && properties != nullptr &&
      properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    see_pool(call, *pool, static_cast<int16_t>(properties->location.id));
  return result;
}

CUresult mem_pool_destroy(const Call& call, CUresult (*real)(CUmemoryPool), CUmemoryPool pool) {
  const CUresult result = real(pool);
  if (result != CUDA_SUCCESS) return result;
  Event event{.kind = EventKind::pool_destroy, .object = reinterpret_cast<uint64_t>(pool)};
  emit(call, event);
  forget_pool(pool);
  return result;
}

CUresult mem_pool_trim_to(const Call& call, CUresult (*real)(CUmemoryPool, size_t),
                          CUmemoryPool pool, size_t bytes) {
  const CUresult result = real(pool, bytes);
  update_pool(call, pool);
  return result;
}

CUresult mem_pool_set_attribute(const Call& call,
                                CUresult (*real)(CUmemoryPool, CUmemPool_attribute, void*),
                                CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const CUresult result = real(pool, attribute, value);
  update_pool(call, pool);
  return result;
}

CUresult mem_pool_import_pointer(
    const Call& call, CUresult (*real)(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*),
    CUdeviceptr* pointer, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  const CUresult result = real(pointer, pool, data);
  if (result != CUDA_SUCCESS || pointer == nullptr) return result;
  // Counted where it was exported; ended by cuMemFree or cuMemFreeAsync.
  Event event{.kind = EventKind::physical_alloc,
              .memory = Memory::imported,
              .device = device_of_pointer(*pointer),
              .address = *pointer,
              .object = reinterpret_cast<uint64_t>(pool)};
  emit(call, event);
  return result;
}

CUresult stream_synchronize(const Call& call, CUresult (*real)(CUstream), CUstream stream) {
  const CUresult result = real(stream);
  update_all_pools(call);
  return result;
}

CUresult event_synchronize(const Call& call, CUresult (*real)(CUevent), CUevent event) {
  const CUresult result = real(event);
  update_all_pools(call);
  return result;
}

CUresult ctx_synchronize(const Call& call, CUresult (*real)()) {
  const CUresult result = real();
  update_all_pools(call);
  return result;
}

}  // namespace vramtrack
