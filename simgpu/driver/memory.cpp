// cuMemAlloc and its kin. Sizes are booked as they were asked for: the coarser units in which a
// card hands out memory are not simulated, so that a total can be compared with the sum of calls.
#include "memory.h"

#include <sys/mman.h>

#include <vector>

#include "activity.h"
#include "tables.h"

namespace simgpu {

Registry& registry() {
  static Registry* const the_registry = new Registry;
  return *the_registry;
}

void Registry::add(const Allocation& allocation) {
  std::unique_lock lock(mutex_);
  Allocation& added = by_address_[allocation.address] = allocation;
  added.buffer_id = next_id();
}

std::optional<Allocation> Registry::find(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) return std::nullopt;
  const Allocation& allocation = std::prev(next)->second;
  if (address - allocation.address >= allocation.size) return std::nullopt;
  return allocation;
}

bool Registry::covers(std::uint64_t address, std::uint64_t size) const {
  std::shared_lock lock(mutex_);
  std::uint64_t end = address + size;
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) return false;
  auto at = std::prev(next);
  while (at != by_address_.end() && at->first <= address && address - at->first < at->second.size) {
    address = at->first + at->second.size;
    if (address >= end) return true;
    ++at;
  }
  return false;
}

CUresult allocate_device(Context* context, std::uint64_t size, Kind kind, Source source,
                         const char* operation, std::uint64_t& address) {
  address = driver().addresses.take(size, kAllocationAlignment);
  Device* device = context->device;
  CUresult result = address == 0 ? CUDA_ERROR_OUT_OF_MEMORY
                                 : device->ledger.charge(kind, size, operation, address);
  if (result != CUDA_SUCCESS) {
    if (address != 0) driver().addresses.give_back(address, size);
    // A request that exceeds the address space is refused, and logged, as one that is too large.
    if (address == 0) device->ledger.charge(kind, size, operation, 0);
    address = 0;
    return result;
  }
  const Allocation made{
      .address = address, .size = size, .source = source, .context = context, .device = device};
  registry().add(made);
  tell_memory(made, true, nullptr);
  return CUDA_SUCCESS;
}

void release(const Allocation& allocation, const char* operation) {
  Ledger& ledger = allocation.device->ledger;
  std::uint64_t address = allocation.address;
  std::uint64_t size = allocation.size;
  switch (allocation.source) {
    case Source::kDevice:
      ledger.credit(Kind::kDevice, size, operation, address);
      break;
    case Source::kArray:
      ledger.credit(Kind::kArray, size, operation, address);
      break;
    case Source::kModule:
      ledger.credit(Kind::kModule, size, operation, address);
      break;
    case Source::kManaged:
      munmap(reinterpret_cast<void*>(address), size);
      ledger.credit(Kind::kManaged, size, operation, address);
      return;
    case Source::kPinned:
      munmap(reinterpret_cast<void*>(address), size);
      ledger.credit(Kind::kPinned, size, operation, address);
      return;
    case Source::kRegistered:
      ledger.credit(Kind::kRegistered, size, operation, address);
      return;
    case Source::kPool:
      release_to_pool(allocation, operation);
      return;
    case Source::kGraph:
      release_graph_allocation(allocation, operation);
      return;
    case Source::kIpcImport:
    case Source::kVmmMapping:
      break;
  }
  driver().contents.forget(address, size);
  if (allocation.source != Source::kVmmMapping) driver().addresses.give_back(address, size);
}

// The implicit end: what the context's allocations still hold goes with it. VMM handles belong to
// nobody and stay.
void release_context_memory(Context* context) {
  std::vector<std::uint64_t> addresses;
  registry().for_each([&](const Allocation& allocation) {
    if (allocation.context == context && allocation.source != Source::kVmmMapping)
      addresses.push_back(allocation.address);
  });
  for (std::uint64_t address : addresses)
    if (auto allocation = registry().remove(
            address, [&](const Allocation& found) { return found.context == context; }))
      release(*allocation, "context end");
  if (context->primary) trim_pools_on_reset(context->device);
}

CUresult allocate_managed(CUdeviceptr* pointer, std::size_t size, unsigned flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (pointer == nullptr || size == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  SIMGPU_TRY(refuse_in_capture());
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  auto address = reinterpret_cast<std::uint64_t>(memory);
  context->device->ledger.charge(Kind::kManaged, size, "cuMemAllocManaged", address);
  const Allocation made{.address = address,
                        .size = size,
                        .source = Source::kManaged,
                        .context = context,
                        .device = context->device,
                        .flags = flags};
  registry().add(made);
  tell_memory(made, true, nullptr);
  *pointer = address;
  return CUDA_SUCCESS;
}

namespace {

CUresult free_device(CUdeviceptr pointer, const char* operation) {
  SIMGPU_TRY(require_init());
  if (pointer == 0) return CUDA_SUCCESS;
  SIMGPU_TRY(refuse_in_capture());
  auto allocation = registry().remove(pointer, [](const Allocation& found) {
    return found.source == Source::kDevice || found.source == Source::kManaged ||
           found.source == Source::kPool || found.source == Source::kGraph;
  });
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->context != nullptr && allocation->context->active.load())
    complete_context(allocation->context);  // cuMemFree waits for the device
  tell_memory(*allocation, false, nullptr);
  release(*allocation, operation);
  return CUDA_SUCCESS;
}

constexpr std::uint64_t kPitchAlignment = 512;

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
  return told("cuMemAlloc_v2", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(refuse_in_capture());
    std::uint64_t address;
    SIMGPU_TRY(
        allocate_device(context, size, Kind::kDevice, Source::kDevice, "cuMemAlloc", address));
    *pointer = address;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                            unsigned int element_size) {
  return told("cuMemAllocPitch_v2", [&]() -> CUresult {
    Context* context;
    SIMGPU_TRY(enter(context));
    if (pointer == nullptr || pitch == nullptr || width == 0 || height == 0 ||
        (element_size != 4 && element_size != 8 && element_size != 16))
      return CUDA_ERROR_INVALID_VALUE;
    SIMGPU_TRY(refuse_in_capture());
    if (width > (std::uint64_t{1} << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
    std::uint64_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    std::uint64_t size;
    if (__builtin_mul_overflow(row, height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
    std::uint64_t address;
    SIMGPU_TRY(
        allocate_device(context, size, Kind::kDevice, Source::kDevice, "cuMemAllocPitch", address));
    *pointer = address;
    *pitch = row;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned int flags) {
  return told("cuMemAllocManaged", [&]() { return allocate_managed(pointer, size, flags); });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return told("cuMemFree_v2", [&]() -> CUresult { return free_device(pointer, "cuMemFree"); });
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  Context* context;
  SIMGPU_TRY(enter(context));
  // Programs ask with either pointer missing.
  if (free_bytes != nullptr) *free_bytes = context->device->ledger.free();
  if (total != nullptr) *total = context->device->ledger.total();
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr pointer) {
  Context* context;
  SIMGPU_TRY(enter(context));
  auto allocation = registry().find(pointer);
  if (!allocation || allocation->is_host()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation->address;
  if (size != nullptr) *size = allocation->size;
  return CUDA_SUCCESS;
}
