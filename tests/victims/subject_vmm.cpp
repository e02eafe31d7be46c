// Virtual memory management, by driver functions that the runtime hands out, as PyTorch and NCCL
// reach them.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "driver_calls.h"
#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

CUmemAllocationProp device_property() {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  property.location.id = 0;
  return property;
}

size_t granularity() {
  const CUmemAllocationProp property = device_property();
  size_t size = 0;
  SUCCEEDS(DRIVER_CALL(cuMemGetAllocationGranularity, &size, &property,
                       CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return size;
}

void grant(CUdeviceptr address, size_t size) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = 0;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SUCCEEDS(DRIVER_CALL(cuMemSetAccess, address, size, &access, 1));
}

const void* as_pointer(CUdeviceptr address) {
  return reinterpret_cast<const void*>(address);
}

// A handle is not an address; it stands in the same field, so that its end can be matched.
const void* as_pointer_of_handle(CUmemGenericAllocationHandle handle) {
  return reinterpret_cast<const void*>(handle);
}

}  // namespace

#define CREATE(handle, size, property) \
  ALLOCATES(cuMemCreate(&(handle), size, &(property), 0), "vmm", as_pointer_of_handle(handle), size)

void virtual_memory() {
  VICTIM_FRAME;
  SUCCEEDS(cudaFree(nullptr));
  const auto cuMemCreate = DRIVER_FUNCTION(cuMemCreate);
  const auto cuMemRelease = DRIVER_FUNCTION(cuMemRelease);
  const CUmemAllocationProp property = device_property();
  const size_t unit = granularity();
  CUdeviceptr base = 0;
  SUCCEEDS(DRIVER_CALL(cuMemAddressReserve, &base, 16 * unit, 0, 0, 0));
  say_raw("reserve", "\"bytes\":" + std::to_string(16 * unit));
  CUmemGenericAllocationHandle first = 0;
  CUmemGenericAllocationHandle second = 0;
  CREATE(first, unit, property);
  CREATE(second, 3 * unit, property);
  SUCCEEDS(DRIVER_CALL(cuMemMap, base, unit, 0, first, 0));
  SUCCEEDS(DRIVER_CALL(cuMemMap, base + unit, 3 * unit, 0, second, 0));
  grant(base, 4 * unit);
  say_raw("mapped", "\"bytes\":" + std::to_string(4 * unit));
  SUCCEEDS(cudaMemset(reinterpret_cast<void*>(base + unit / 2), 7, unit));

  // Released while mapped: the bytes stay until the mapping goes.
  SUCCEEDS(cuMemRelease(first));
  say_raw("released-but-mapped", "\"bytes\":" + std::to_string(unit));
  FREES(DRIVER_CALL(cuMemUnmap, base, unit), "vmm", as_pointer(base), unit);
  SUCCEEDS(DRIVER_CALL(cuMemUnmap, base + unit, 3 * unit));
  FREES(cuMemRelease(second), "vmm", as_pointer_of_handle(second), 3 * unit);
  SUCCEEDS(DRIVER_CALL(cuMemAddressFree, base, 16 * unit));
}

// A handle that goes out as a file descriptor and comes back is the same memory.
void imported_handle() {
  VICTIM_FRAME;
  SUCCEEDS(cudaFree(nullptr));
  const auto cuMemCreate = DRIVER_FUNCTION(cuMemCreate);
  const auto cuMemRelease = DRIVER_FUNCTION(cuMemRelease);
  CUmemAllocationProp property = device_property();
  property.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const size_t unit = granularity();
  CUmemGenericAllocationHandle handle = 0;
  CREATE(handle, 2 * unit, property);
  int descriptor = -1;
  SUCCEEDS(DRIVER_CALL(cuMemExportToShareableHandle, &descriptor, handle,
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported = 0;
  SUCCEEDS(DRIVER_CALL(cuMemImportFromShareableHandle, &imported,
                       reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  say_raw("imported", "\"bytes\":" + std::to_string(2 * unit));
  SUCCEEDS(close(descriptor));
  SUCCEEDS(cuMemRelease(imported));
  FREES(cuMemRelease(handle), "vmm", as_pointer_of_handle(handle), 2 * unit);
}

// One handle at two addresses holds its bytes once.
void second_mapping() {
  VICTIM_FRAME;
  SUCCEEDS(cudaFree(nullptr));
  const auto cuMemCreate = DRIVER_FUNCTION(cuMemCreate);
  const auto cuMemRelease = DRIVER_FUNCTION(cuMemRelease);
  const CUmemAllocationProp property = device_property();
  const size_t unit = granularity();
  CUdeviceptr base = 0;
  SUCCEEDS(DRIVER_CALL(cuMemAddressReserve, &base, 4 * unit, 0, 0, 0));
  CUmemGenericAllocationHandle handle = 0;
  CREATE(handle, 2 * unit, property);
  SUCCEEDS(DRIVER_CALL(cuMemMap, base, 2 * unit, 0, handle, 0));
  SUCCEEDS(DRIVER_CALL(cuMemMap, base + 2 * unit, 2 * unit, 0, handle, 0));
  grant(base, 4 * unit);
  say_raw("mapped-twice", "\"bytes\":" + std::to_string(2 * unit));

  // The two views show the same memory.
  const unsigned int written = 0x5eed;
  unsigned int read = 0;
  void* const one = reinterpret_cast<void*>(base);
  void* const other = reinterpret_cast<void*>(base + 2 * unit);
  SUCCEEDS(cudaMemcpy(one, &written, sizeof written, cudaMemcpyHostToDevice));
  SUCCEEDS(cudaMemcpy(&read, other, sizeof read, cudaMemcpyDeviceToHost));
  say_raw("aliased",
          "\"expected\":" + std::to_string(written) + ",\"read\":" + std::to_string(read));

  // A reference that was retained through an address counts like the one that created it.
  CUmemGenericAllocationHandle retained = 0;
  SUCCEEDS(DRIVER_CALL(cuMemRetainAllocationHandle, &retained, other));
  SUCCEEDS(cuMemRelease(handle));
  SUCCEEDS(DRIVER_CALL(cuMemUnmap, base, 4 * unit));
  say_raw("unmapped-but-retained", "\"bytes\":" + std::to_string(2 * unit));
  FREES(cuMemRelease(retained), "vmm", as_pointer_of_handle(handle), 2 * unit);
  SUCCEEDS(DRIVER_CALL(cuMemAddressFree, base, 4 * unit));
}

}  // namespace victims
