// Virtual memory management: references and mappings both keep a handle's memory.
#include <unistd.h>

#include "context.h"

using namespace vramtrack::test;

namespace {

CUmemAllocationProp on_device(CUdevice device, unsigned handle_types = 0) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  return properties;
}

constexpr std::size_t kUnit = 2 * kMiB;

}  // namespace

TEST_CASE("memory is booked by handle, until references and mappings are gone") {
  SimulatedContext gpu;
  const CUmemAllocationProp properties = on_device(gpu.device);
  std::size_t granularity = 0;
  OK(cuMemGetAllocationGranularity(&granularity, &properties,
                                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  REQUIRE(granularity == kUnit);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, 100 * kGiB, 0, 0, 0));  // more than the card has
  CHECK(gpu.usage().vmm == 0);
  CUmemGenericAllocationHandle handle = 0;
  CHECK(cuMemCreate(&handle, kUnit + 1, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemCreate(&handle, 2 * kUnit, &properties, 0));
  CHECK(gpu.usage().vmm == 2 * kUnit);
  OK(cuMemMap(range, 2 * kUnit, 0, handle, 0));
  OK(cuMemMap(range + 10 * kUnit, kUnit, 0, handle, 0));  // a second view
  CHECK(cuMemMap(range + kUnit, kUnit, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.usage().vmm == 2 * kUnit);
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cuMemSetAccess(range, 2 * kUnit, &access, 1));
  CHECK(cuMemSetAccess(range, 3 * kUnit, &access, 1) == CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags = 0;
  OK(cuMemGetAccess(&flags, &properties.location, range));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

  const int value = 4711;
  int back = 0;
  OK(cuMemcpyHtoD(range + 64, &value, sizeof value));
  OK(cuMemcpyDtoH(&back, range + 10 * kUnit + 64, sizeof back));
  CHECK(back == value);  // both mappings show the same memory

  OK(cuMemRelease(handle));
  CHECK(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.usage().vmm == 2 * kUnit);
  CHECK(cuMemUnmap(range, kUnit) == CUDA_ERROR_INVALID_VALUE);  // half a mapping
  OK(cuMemUnmap(range, 2 * kUnit));
  CHECK(gpu.usage().vmm == 2 * kUnit);
  CHECK(cuMemAddressFree(range, 100 * kGiB) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemUnmap(range + 10 * kUnit, kUnit));
  CHECK(gpu.usage().vmm == 0);
  OK(cuMemAddressFree(range, 100 * kGiB));
}

TEST_CASE("a mapping's handle can be retained") {
  SimulatedContext gpu;
  const CUmemAllocationProp properties = on_device(gpu.device);
  CUdeviceptr range = 0;
  OK(cuMemAddressReserve(&range, kUnit, 0, 0, 0));
  CUmemGenericAllocationHandle handle = 0, retained = 0;
  OK(cuMemCreate(&handle, kUnit, &properties, 0));
  OK(cuMemMap(range, kUnit, 0, handle, 0));
  OK(cuMemRelease(handle));
  OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range + 5)));
  OK(cuMemUnmap(range, kUnit));
  CHECK(gpu.usage().vmm == kUnit);
  OK(cuMemRelease(retained));
  CHECK(gpu.usage().vmm == 0);
  OK(cuMemAddressFree(range, kUnit));
}

TEST_CASE("file descriptors are shared, fabric handles refused") {
  SimulatedContext gpu;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  CUmemAllocationProp properties = on_device(gpu.device, CU_MEM_HANDLE_TYPE_FABRIC);
  CHECK(cuMemCreate(&handle, kUnit, &properties, 0) == CUDA_ERROR_NOT_SUPPORTED);
  properties = on_device(gpu.device, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  OK(cuMemCreate(&handle, kUnit, &properties, 0));
  int descriptor = -1;
  OK(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                  0));
  OK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(std::intptr_t{descriptor}),
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  CHECK(gpu.usage().vmm == kUnit);  // the same memory once more
  OK(cuMemRelease(handle));
  CHECK(gpu.usage().vmm == kUnit);
  OK(cuMemRelease(imported));
  CHECK(gpu.usage().vmm == 0);
}

TEST_CASE("creating memory meets the card's size") {
  SimulatedContext gpu;
  const CUmemAllocationProp properties = on_device(gpu.device);
  CUmemGenericAllocationHandle handle = 0;
  CHECK(cuMemCreate(&handle, 9 * kGiB, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(gpu.usage().vmm == 0);
}
