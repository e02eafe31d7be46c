// Pinned and registered host memory: real memory of this process, outside the device's size.
#include <sys/mman.h>

#include "activity.h"
#include "memory.h"
#include "tables.h"

using namespace simgpu;

namespace {

CUresult allocate(void** pointer, size_t size, unsigned flags, const char* operation) {
  Context* context;
  SIMGPU_TRY(enter(context));
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (pointer == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(refuse_in_capture());
  if (size == 0) {
    *pointer = nullptr;
    return CUDA_SUCCESS;
  }
  // Touched when it is used: a rehearsal must not need the memory that it does not fill.
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  auto address = reinterpret_cast<std::uint64_t>(memory);
  context->device->ledger.charge(Kind::kPinned, size, operation, address);
  const Allocation made{.address = address,
                        .size = size,
                        .source = Source::kPinned,
                        .context = context,
                        .device = context->device,
                        .flags = flags};
  registry().add(made);
  tell_memory(made, true, nullptr);
  *pointer = memory;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocHost_v2(void** pointer, size_t size) {
  return told("cuMemAllocHost_v2",
              [&]() -> CUresult { return allocate(pointer, size, 0, "cuMemAllocHost"); });
}

CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return told("cuMemHostAlloc",
              [&]() -> CUresult { return allocate(pointer, size, flags, "cuMemHostAlloc"); });
}

CUresult cuMemFreeHost(void* pointer) {
  return told("cuMemFreeHost", [&]() -> CUresult {
    SIMGPU_TRY(require_init());
    if (pointer == nullptr) return CUDA_SUCCESS;
    SIMGPU_TRY(refuse_in_capture());
    auto allocation =
        registry().remove(reinterpret_cast<std::uint64_t>(pointer),
                          [](const Allocation& found) { return found.source == Source::kPinned; });
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    tell_memory(*allocation, false, nullptr);
    release(*allocation, "cuMemFreeHost");
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                              CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (pointer == nullptr || size == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(refuse_in_capture());
  auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (driver().addresses.contains(address)) return CUDA_ERROR_INVALID_VALUE;
  if (registry().find(address) || registry().find(address + size - 1))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  context->device->ledger.charge(Kind::kRegistered, size, "cuMemHostRegister", address);
  registry().add({.address = address,
                  .size = size,
                  .source = Source::kRegistered,
                  .context = context,
                  .device = context->device,
                  .flags = flags});
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* pointer, size_t size, unsigned int flags) {
  return cuMemHostRegister_v2(pointer, size, flags);
}

CUresult cuMemHostUnregister(void* pointer) {
  SIMGPU_TRY(require_init());
  auto allocation = registry().remove(
      reinterpret_cast<std::uint64_t>(pointer),
      [](const Allocation& found) { return found.source == Source::kRegistered; });
  if (!allocation) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  release(*allocation, "cuMemHostUnregister");
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer,
                                      unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (device_pointer == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto address = reinterpret_cast<std::uint64_t>(pointer);
  auto allocation = registry().find(address);
  if (!allocation || !allocation->is_real()) return CUDA_ERROR_INVALID_VALUE;
  *device_pointer = address;  // unified addressing
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto allocation = registry().find(reinterpret_cast<std::uint64_t>(pointer));
  if (!allocation || allocation->source != Source::kPinned) return CUDA_ERROR_INVALID_VALUE;
  // Unified addressing maps every pinned allocation.
  *flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
