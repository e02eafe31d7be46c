// The functions of pools and of stream-ordered allocation.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "activity.h"
#include "pool.h"
#include "shareable.h"
#include "tables.h"

using namespace simgpu;

namespace {

CUresult find_pool(CUmemoryPool handle, Pool*& pool) {
  SIMGPU_TRY(require_init());
  pool = driver().tables->pools.find(handle);
  if (pool == nullptr || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUmemoryPool handle_of(Pool* pool) {
  return driver().tables->pools.handle(pool);
}

CUresult allocate(CUdeviceptr* pointer, size_t size, Pool* pool, CUstream stream_handle,
                  Context* context, const char* operation) {
  Stream* stream;
  SIMGPU_TRY(find_stream(stream_handle, context, stream));
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (size == 0) {
    *pointer = 0;
    return CUDA_SUCCESS;
  }
  if (pool == nullptr) pool = stream->context->device->current_pool.load();
  if (pool->imported) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  if (stream->capture.load(std::memory_order_acquire) != nullptr)
    SIMGPU_TRY(capture_allocation(stream, pool->device, size, address));
  else
    SIMGPU_TRY(pool_allocate(pool, stream->context, size, operation, address));
  *pointer = address;
  if (listening())
    if (auto made = registry().find(address)) tell_memory(*made, true, stream);
  return CUDA_SUCCESS;
}

CUresult device_of_location(const CUmemLocation* location, Device*& device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return find_device(location->id, device);
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream stream) {
  return told("cuMemAllocAsync", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    return allocate(pointer, size, nullptr, stream, context, "cuMemAllocAsync");
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t size, CUmemoryPool pool_handle,
                                 CUstream stream) {
  return told("cuMemAllocFromPoolAsync", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    Pool* pool;
    SIMGPU_TRY(find_pool(pool_handle, pool));
    return allocate(pointer, size, pool, stream, context, "cuMemAllocFromPoolAsync");
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream_handle) {
  return told("cuMemFreeAsync", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    Stream* stream;
    SIMGPU_TRY(find_stream(stream_handle, context, stream));
    if (pointer == 0) return CUDA_SUCCESS;
    if (stream->capture.load(std::memory_order_acquire) != nullptr)
      return capture_free(stream, pointer);
    auto allocation = registry().remove(pointer, [](const Allocation& found) {
      return found.source == Source::kPool || found.source == Source::kDevice ||
             found.source == Source::kGraph;
    });
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    tell_memory(*allocation, false, stream);
    release(*allocation, "cuMemFreeAsync");
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = handle_of(device->default_pool);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = handle_of(device->current_pool.load());
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                CUmemAllocationType type) {
  Device* device;
  SIMGPU_TRY(device_of_location(location, device));
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  Device* device;
  SIMGPU_TRY(device_of_location(location, device));
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  Device* device;
  SIMGPU_TRY(device_of_location(location, device));
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceSetMemPool(location->id, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  return told("cuMemPoolCreate", [&]() -> CUresult {
    SIMGPU_TRY(require_init());
    if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
    if ((properties->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    Device* device;
    SIMGPU_TRY(device_of_location(&properties->location, device));
    Pool* pool = driver().tables->pools.create();
    if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    pool->device = device;
    pool->handle_types = static_cast<unsigned>(properties->handleTypes);
    pool->maximum = properties->maxSize;
    *handle = handle_of(pool);
    tell_pool(pool, 1, 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return told("cuMemPoolDestroy", [&]() -> CUresult {
    Pool* pool;
    SIMGPU_TRY(find_pool(handle, pool));
    if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
    Pool* current = pool;
    pool->device->current_pool.compare_exchange_strong(current, pool->device->default_pool);
    // Allocations stay valid; what holds them goes back with the last of them.
    std::unique_lock lock(pool->mutex);
    pool->destroyed = true;
    lock.unlock();
    trim_pool(pool, 0, "cuMemPoolDestroy");
    tell_pool(pool, 2, 0);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  return told("cuMemPoolTrimTo", [&]() -> CUresult {
    Pool* pool;
    SIMGPU_TRY(find_pool(handle, pool));
    trim_pool(pool, keep, "cuMemPoolTrimTo");
    tell_pool(pool, 3, keep);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(pool->mutex);
  auto* number = static_cast<cuuint64_t*>(value);
  auto* flag = static_cast<int*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      *flag = pool->reuse_follow_events;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      *flag = pool->reuse_opportunistic;
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *flag = pool->reuse_internal;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *number = pool->release_threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *number = pool->reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *number = pool->reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *number = pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *number = pool->used_high;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(pool->mutex);
  cuuint64_t number =
      attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? *static_cast<cuuint64_t*>(value) : 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      pool->reuse_follow_events = *static_cast<int*>(value);
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      pool->reuse_opportunistic = *static_cast<int*>(value);
      break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse_internal = *static_cast<int*>(value);
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = number;
      break;
    // The high-water marks can be reset, to zero only.
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (number != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->reserved;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (map == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    Device* device;
    SIMGPU_TRY(device_of_location(&map[i].location, device));
    // The owner keeps its access.
    if (device == pool->device && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
      return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard lock(pool->mutex);
    pool->access[device->ordinal] = map[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                            CUmemLocation* location) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  Device* device;
  SIMGPU_TRY(device_of_location(location, device));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(pool->mutex);
  auto found = pool->access.find(device->ordinal);
  *flags = device == pool->device        ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found != pool->access.end() ? found->second
                                         : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      (pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return export_descriptor({.kind = ShareableKind::kPool,
                            .device = pool->device->ordinal,
                            .size = 0,
                            .object = reinterpret_cast<std::uint64_t>(pool)},
                           static_cast<int*>(out));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  SIMGPU_TRY(require_init());
  if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  Shareable described;
  SIMGPU_TRY(import_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)),
                               ShareableKind::kPool, described));
  Device* device;
  SIMGPU_TRY(find_device(described.device, device));
  Pool* pool = driver().tables->pools.create();
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->device = device;
  pool->imported = true;
  *out = handle_of(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  auto allocation = registry().find(pointer);
  if (out == nullptr || !allocation || allocation->source != Source::kPool)
    return CUDA_ERROR_INVALID_VALUE;
  Shareable described{.kind = ShareableKind::kPoolPointer,
                      .device = allocation->device->ordinal,
                      .size = allocation->size,
                      .object = pointer};
  described.stamp();
  std::memset(out, 0, sizeof *out);
  static_assert(sizeof described <= sizeof *out);
  std::memcpy(out, &described, sizeof described);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle,
                                CUmemPoolPtrExportData* data) {
  Pool* pool;
  SIMGPU_TRY(find_pool(handle, pool));
  if (out == nullptr || data == nullptr || !pool->imported) return CUDA_ERROR_INVALID_VALUE;
  Shareable described;
  std::memcpy(static_cast<void*>(&described), data, sizeof described);
  if (!described.valid(ShareableKind::kPoolPointer)) return CUDA_ERROR_INVALID_VALUE;
  return import_memory(pool->device, described.size, *out);
}
