// Virtual memory management: handles hold the bytes, mappings are views of them, reservations cost
// nothing. Also what is imported: bytes that another process or API owns and counts.
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/real_functions.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

Memory memory_of(const CUmemAllocationProp& properties) {
  return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? Memory::device
                                                                 : Memory::vmm_host;
}

int16_t device_of(const CUmemAllocationProp& properties) {
  return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE
             ? static_cast<int16_t>(properties.location.id)
             : kNoDevice;
}

void simple_event(const Call& call, EventKind kind, uint64_t address, uint64_t size,
                  uint64_t object) {
  Event event{.kind = kind, .address = address, .size = size, .object = object};
  emit(call, event);
}

}  // namespace

CUresult mem_create(const Call& call,
                    CUresult (*real)(CUmemGenericAllocationHandle*, size_t,
                                     const CUmemAllocationProp*, unsigned long long),
                    CUmemGenericAllocationHandle* handle, size_t bytes,
                    const CUmemAllocationProp* properties, unsigned long long flags) {
  const CUresult result = real(handle, bytes, properties, flags);
  if (properties == nullptr || (result == CUDA_SUCCESS && handle == nullptr)) return result;
  const int16_t device = device_of(*properties);
  see_device(device);
  Event event{.kind = EventKind::handle_create,
              .memory = memory_of(*properties),
              .device = device,
              .size = bytes};
  if (result == CUDA_SUCCESS) {
    event.object = *handle;
    t_allocated = true;
  } else {
    event.kind = EventKind::physical_failed;
    event.result = result;
  }
  emit(call, event);
  if (result == CUDA_SUCCESS)
    sample_memory_if_due();
  else
    sample_memory();
  return result;
}

CUresult mem_release(const Call& call, CUresult (*real)(CUmemGenericAllocationHandle),
                     CUmemGenericAllocationHandle handle) {
  const CUresult result = real(handle);
  if (result == CUDA_SUCCESS) simple_event(call, EventKind::handle_release, 0, 0, handle);
  return result;
}

CUresult mem_map(const Call& call,
                 CUresult (*real)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                                  unsigned long long),
                 CUdeviceptr pointer, size_t bytes, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const CUresult result = real(pointer, bytes, offset, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  Event event{
      .kind = EventKind::map, .address = pointer, .size = bytes, .object = handle, .extra = offset};
  emit(call, event);
  return result;
}

CUresult mem_unmap(const Call& call, CUresult (*real)(CUdeviceptr, size_t), CUdeviceptr pointer,
                   size_t bytes) {
  const CUresult result = real(pointer, bytes);
  if (result == CUDA_SUCCESS) simple_event(call, EventKind::unmap, pointer, bytes, 0);
  return result;
}

CUresult mem_address_reserve(const Call& call,
                             CUresult (*real)(CUdeviceptr*, size_t, size_t, CUdeviceptr,
                                              unsigned long long),
                             CUdeviceptr* pointer, size_t bytes, size_t alignment,
                             CUdeviceptr address, unsigned long long flags) {
  const CUresult result = real(pointer, bytes, alignment, address, flags);
  if (result == CUDA_SUCCESS && pointer != nullptr)
    simple_event(call, EventKind::address_reserve, *pointer, bytes, 0);
  return result;
}

CUresult mem_address_free(const Call& call, CUresult (*real)(CUdeviceptr, size_t),
                          CUdeviceptr pointer, size_t bytes) {
  const CUresult result = real(pointer, bytes);
  if (result == CUDA_SUCCESS) simple_event(call, EventKind::address_free, pointer, bytes, 0);
  return result;
}

CUresult mem_import_from_shareable_handle(const Call& call,
                                          CUresult (*real)(CUmemGenericAllocationHandle*, void*,
                                                           CUmemAllocationHandleType),
                                          CUmemGenericAllocationHandle* handle, void* os_handle,
                                          CUmemAllocationHandleType type) {
  const CUresult result = real(handle, os_handle, type);
  if (result != CUDA_SUCCESS || handle == nullptr) return result;
  // A handle like any other from here on, but its bytes are the exporter's.
  Event event{.kind = EventKind::handle_create, .memory = Memory::imported, .object = *handle};
  emit(call, event);
  return result;
}

CUresult mem_retain_allocation_handle(const Call& call,
                                      CUresult (*real)(CUmemGenericAllocationHandle*, void*),
                                      CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = real(handle, address);
  if (result == CUDA_SUCCESS && handle != nullptr)
    simple_event(call, EventKind::handle_retain, reinterpret_cast<uint64_t>(address), 0, *handle);
  return result;
}

CUresult multicast_create(
    const Call& call, CUresult (*real)(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*),
    CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp* properties) {
  const CUresult result = real(handle, properties);
  if (result != CUDA_SUCCESS || handle == nullptr || properties == nullptr) return result;
  Event event{.kind = EventKind::handle_create,
              .memory = Memory::multicast,
              .size = properties->size,
              .object = *handle};
  emit(call, event);
  return result;
}

CUresult ipc_open_mem_handle(const Call& call,
                             CUresult (*real)(CUdeviceptr*, CUipcMemHandle, unsigned),
                             CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  const CUresult result = real(pointer, handle, flags);
  if (result != CUDA_SUCCESS || pointer == nullptr) return result;
  size_t bytes = 0;
  const auto range = driver_calls().cuMemGetAddressRange_v2;
  if (range != nullptr && range(nullptr, &bytes, *pointer) != CUDA_SUCCESS) bytes = 0;
  Event event{.kind = EventKind::import_open,
              .memory = Memory::imported,
              .device = device_of_pointer(*pointer),
              .address = *pointer,
              .size = bytes};
  emit(call, event);
  return result;
}

CUresult ipc_close_mem_handle(const Call& call, CUresult (*real)(CUdeviceptr),
                              CUdeviceptr pointer) {
  const CUresult result = real(pointer);
  if (result == CUDA_SUCCESS) simple_event(call, EventKind::import_close, pointer, 0, 0);
  return result;
}

CUresult import_external_memory(
    const Call& call, CUresult (*real)(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*),
    CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  const CUresult result = real(memory, descriptor);
  if (result != CUDA_SUCCESS || memory == nullptr || descriptor == nullptr) return result;
  Event event{.kind = EventKind::import_open,
              .memory = Memory::imported,
              .device = current_device(),
              .size = descriptor->size,
              .object = reinterpret_cast<uint64_t>(*memory)};
  emit(call, event);
  return result;
}

CUresult destroy_external_memory(const Call& call, CUresult (*real)(CUexternalMemory),
                                 CUexternalMemory memory) {
  const CUresult result = real(memory);
  if (result == CUDA_SUCCESS)
    simple_event(call, EventKind::import_close, 0, 0, reinterpret_cast<uint64_t>(memory));
  return result;
}

CUresult external_memory_get_mapped_buffer(
    const Call& call,
    CUresult (*real)(CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*),
    CUdeviceptr* pointer, CUexternalMemory memory,
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* descriptor) {
  const CUresult result = real(pointer, memory, descriptor);
  if (result != CUDA_SUCCESS || pointer == nullptr || descriptor == nullptr) return result;
  // A view of the import; the program ends it with cuMemFree.
  Event event{.kind = EventKind::physical_alloc,
              .memory = Memory::imported,
              .device = current_device(),
              .address = *pointer,
              .size = descriptor->size,
              .object = reinterpret_cast<uint64_t>(memory)};
  emit(call, event);
  return result;
}

}  // namespace vramtrack
