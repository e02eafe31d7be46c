#include "vmm.h"

#include <vector>

#include "shareable.h"
#include "tables.h"

namespace simgpu {
namespace {

VmmState& vmm() {
  return driver().tables->vmm;
}

bool aligned(std::uint64_t value) {
  return value % kVmmGranularity == 0;
}

// The memory goes when neither a reference nor a mapping is left.
void release_if_unused(VmmHandle* handle, const char* operation) {
  if (handle->references > 0 || handle->mappings > 0) return;
  driver().contents.forget(handle->contents_address, handle->size);
  driver().addresses.give_back(handle->contents_address, handle->size);
  if (handle->device != nullptr && !handle->imported)
    handle->device->ledger.credit(Kind::kVmm, handle->size, operation,
                                  vmm().handles.handle(handle));
  vmm().handles.destroy(handle);
}

VmmHandle* find_referenced(CUmemGenericAllocationHandle handle) {
  VmmHandle* found = vmm().handles.find(handle);
  return found != nullptr && found->references > 0 ? found : nullptr;
}

bool in_reservation(std::uint64_t address, std::uint64_t size) {
  auto& reservations = vmm().reservations;
  auto next = reservations.upper_bound(address);
  if (next == reservations.begin()) return false;
  auto [start, length] = *std::prev(next);
  return address + size <= start + length;
}

// The mappings that lie wholly in the range; false where one sticks out or a byte is unmapped.
bool mappings_of(std::uint64_t address, std::uint64_t size, std::vector<Allocation>& found) {
  for (std::uint64_t at = address; at < address + size;) {
    auto mapping = registry().find(at);
    if (!mapping || mapping->source != Source::kVmmMapping || mapping->address != at ||
        at + mapping->size > address + size)
      return false;
    at += mapping->size;
    found.push_back(*mapping);
  }
  return true;
}

CUresult new_handle(const CUmemAllocationProp& properties, Device* device, std::uint64_t size,
                    bool imported, CUmemGenericAllocationHandle* out) {
  VmmHandle* handle = vmm().handles.create();
  if (handle == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  handle->device = device;
  handle->size = size;
  handle->properties = properties;
  handle->imported = imported;
  handle->contents_address = driver().addresses.take(size, kVmmGranularity);
  CUresult result = handle->contents_address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS && device != nullptr && !imported)
    result = device->ledger.charge(Kind::kVmm, size, "cuMemCreate", vmm().handles.handle(handle));
  if (result != CUDA_SUCCESS) {
    if (handle->contents_address != 0) driver().addresses.give_back(handle->contents_address, size);
    vmm().handles.destroy(handle);
    return result;
  }
  *out = vmm().handles.handle(handle);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  SIMGPU_TRY(require_init());
  if (granularity == nullptr || properties == nullptr ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  *granularity = kVmmGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  SIMGPU_TRY(require_init());
  if (out == nullptr || properties == nullptr || flags != 0 || size == 0 || !aligned(size) ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if ((properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
    return CUDA_ERROR_NOT_SUPPORTED;  // fabric handles need a fabric
  Device* device = nullptr;
  switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      SIMGPU_TRY(find_device(properties->location.id, device));
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::lock_guard lock(vmm().mutex);
  return new_handle(*properties, device, size, false, out);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  VmmHandle* found = find_referenced(handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --found->references;
  release_if_unused(found, "cuMemRelease");
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  SIMGPU_TRY(require_init());
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(vmm().mutex);
  auto mapping = registry().find(reinterpret_cast<std::uint64_t>(address));
  if (!mapping || mapping->source != Source::kVmmMapping) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->vmm->references;
  *out = vmm().handles.handle(mapping->vmm);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  VmmHandle* found = find_referenced(handle);
  if (properties == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t size, size_t alignment,
                             CUdeviceptr address, unsigned long long flags) {
  SIMGPU_TRY(require_init());
  if (pointer == nullptr || size == 0 || !aligned(size) || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t taken =
      driver().addresses.take(size, std::max<std::uint64_t>(alignment, kVmmGranularity), address);
  if (taken == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(vmm().mutex);
  vmm().reservations[taken] = size;
  *pointer = taken;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  auto found = vmm().reservations.find(pointer);
  if (found == vmm().reservations.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  bool mapped = false;
  registry().for_each([&](const Allocation& allocation) {
    mapped = mapped || (allocation.source == Source::kVmmMapping && allocation.address >= pointer &&
                        allocation.address < pointer + size);
  });
  if (mapped) return CUDA_ERROR_INVALID_VALUE;
  vmm().reservations.erase(found);
  driver().addresses.give_back(pointer, size);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  VmmHandle* found = find_referenced(handle);
  if (found == nullptr || flags != 0 || size == 0 || !aligned(size) || !aligned(offset) ||
      !aligned(pointer) || offset > found->size || size > found->size - offset ||
      !in_reservation(pointer, size))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::uint64_t at = pointer; at < pointer + size; at += kVmmGranularity)
    if (registry().find(at)) return CUDA_ERROR_INVALID_VALUE;
  ++found->mappings;
  registry().add({.address = pointer,
                  .size = size,
                  .source = Source::kVmmMapping,
                  .context = nullptr,
                  .device = found->device,
                  .vmm = found,
                  .vmm_offset = offset});
  vmm().access.erase(pointer);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  std::vector<Allocation> mappings;
  if (size == 0 || !mappings_of(pointer, size, mappings)) return CUDA_ERROR_INVALID_VALUE;
  for (const Allocation& mapping : mappings) {
    registry().remove(mapping.address, [](const Allocation&) { return true; });
    vmm().access.erase(mapping.address);
    --mapping.vmm->mappings;
    release_if_unused(mapping.vmm, "cuMemUnmap");
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc* descriptions,
                        size_t count) {
  SIMGPU_TRY(require_init());
  if (descriptions == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(vmm().mutex);
  std::vector<Allocation> mappings;
  if (!mappings_of(pointer, size, mappings)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    int ordinal = -1;
    if (descriptions[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      Device* device;
      SIMGPU_TRY(find_device(descriptions[i].location.id, device));
      ordinal = device->ordinal;
    }
    for (const Allocation& mapping : mappings)
      vmm().access[mapping.address][ordinal] = descriptions[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(vmm().mutex);
  auto mapping = registry().find(pointer);
  if (!mapping) return CUDA_ERROR_INVALID_VALUE;
  int ordinal = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1;
  const auto& access = vmm().access[mapping->address];
  auto found = access.find(ordinal);
  *flags = found == access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(vmm().mutex);
  VmmHandle* found = find_referenced(handle);
  if (out == nullptr || found == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if ((found->properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  return export_descriptor({.kind = ShareableKind::kVmm,
                            .device = found->properties.location.id,
                            .size = found->size,
                            .object = handle,
                            .offset = static_cast<std::uint64_t>(found->properties.location.type)},
                           static_cast<int*>(out));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                        CUmemAllocationHandleType type) {
  SIMGPU_TRY(require_init());
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  Shareable described;
  SIMGPU_TRY(import_descriptor(static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle)),
                               ShareableKind::kVmm, described));
  std::lock_guard lock(vmm().mutex);
  if (described.process == static_cast<std::int32_t>(getpid())) {
    // Our own memory: one more reference to it.
    VmmHandle* own = vmm().handles.find(described.object);
    if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ++own->references;
    *out = described.object;
    return CUDA_SUCCESS;
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = type;
  properties.location.type = static_cast<CUmemLocationType>(described.offset);
  properties.location.id = described.device;
  Device* device = nullptr;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    SIMGPU_TRY(find_device(described.device, device));
  return new_handle(properties, device, described.size, true, out);
}

std::uint64_t simgpu::vmm_contents_address(const VmmHandle* handle) {
  return handle->contents_address;
}

unsigned long long simgpu::vmm_handle_types(const Allocation& allocation) {
  return allocation.vmm == nullptr ? 0 : allocation.vmm->properties.requestedHandleTypes;
}
