// IPC handles and shareable descriptors.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "memory.h"
#include "shareable.h"
#include "tables.h"

namespace simgpu {

CUresult export_descriptor(Shareable described, int* descriptor) {
  described.stamp();
  int file = memfd_create("simgpu", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (write(file, &described, sizeof described) != static_cast<ssize_t>(sizeof described)) {
    close(file);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *descriptor = file;
  return CUDA_SUCCESS;
}

CUresult import_descriptor(int descriptor, ShareableKind kind, Shareable& described) {
  if (pread(descriptor, &described, sizeof described, 0) != static_cast<ssize_t>(sizeof described))
    return CUDA_ERROR_INVALID_VALUE;
  return described.valid(kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult import_memory(Device* device, std::uint64_t size, CUdeviceptr& address) {
  address = driver().addresses.take(size, kAllocationAlignment);
  if (address == 0) return CUDA_ERROR_MAP_FAILED;
  registry().add({.address = address,
                  .size = size,
                  .source = Source::kIpcImport,
                  .context = current_context(),
                  .device = device});
  return CUDA_SUCCESS;
}

namespace {

struct Opened {
  std::int32_t process;
  std::uint64_t object;
  CUdeviceptr address;
};
std::mutex g_opened_mutex;
std::vector<Opened>& opened() {
  static auto* const the_opened = new std::vector<Opened>;
  return *the_opened;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  Context* context;
  SIMGPU_TRY(enter(context));
  auto allocation = registry().find(pointer);
  if (handle == nullptr || !allocation || allocation->source != Source::kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  Shareable described{.kind = ShareableKind::kMemory,
                      .device = allocation->device->ordinal,
                      .size = allocation->size,
                      .object = allocation->address};
  described.stamp();
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &described, sizeof described);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (pointer == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  Shareable described;
  std::memcpy(static_cast<void*>(&described), &handle, sizeof described);
  if (!described.valid(ShareableKind::kMemory)) return CUDA_ERROR_INVALID_HANDLE;
  // Handles are opened by other processes than the one that made them.
  if (described.process == static_cast<std::int32_t>(getpid())) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(g_opened_mutex);
  for (const Opened& known : opened()) {
    if (known.process != described.process || known.object != described.object) continue;
    registry().change(known.address, [](Allocation& found) { ++found.opened; });
    *pointer = known.address;
    return CUDA_SUCCESS;
  }
  Device* device;
  SIMGPU_TRY(find_device(described.device, device));
  SIMGPU_TRY(import_memory(device, described.size, *pointer));
  opened().push_back({described.process, described.object, *pointer});
  return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  SIMGPU_TRY(require_init());
  std::lock_guard lock(g_opened_mutex);
  bool last = false;
  registry().change(pointer, [&](Allocation& found) {
    last = found.source == Source::kIpcImport && --found.opened == 0;
  });
  auto allocation = registry().find(pointer);
  if (!allocation || allocation->source != Source::kIpcImport || allocation->address != pointer)
    return CUDA_ERROR_INVALID_VALUE;
  if (!last) return CUDA_SUCCESS;
  std::erase_if(opened(), [&](const Opened& known) { return known.address == pointer; });
  if (auto removed = registry().remove(pointer, [](const Allocation&) { return true; }))
    release(*removed, "cuIpcCloseMemHandle");
  return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  SIMGPU_TRY(require_init());
  Event* event;
  SIMGPU_TRY(find_event(event_handle, event));
  if (handle == nullptr || (event->flags & CU_EVENT_INTERPROCESS) == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  Shareable described{.kind = ShareableKind::kEvent,
                      .device = event->context->device->ordinal,
                      .object = reinterpret_cast<std::uint64_t>(event)};
  described.stamp();
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &described, sizeof described);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event_handle, CUipcEventHandle handle) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Shareable described;
  std::memcpy(static_cast<void*>(&described), &handle, sizeof described);
  if (event_handle == nullptr || !described.valid(ShareableKind::kEvent))
    return CUDA_ERROR_INVALID_HANDLE;
  // A work of another process: done as soon as it is asked about.
  SIMGPU_TRY(cuEventCreate(event_handle, CU_EVENT_DISABLE_TIMING));
  assume("ipc event", 1);
  return CUDA_SUCCESS;
}
