// NVML: devices, names, memory and the one process that there is, this one.
//
// Other processes that run on simulated GPUs do not see each other.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "driver_link.h"
#include "nvml_types.h"

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

using simgpu::driver_link;

namespace {

std::atomic<int> g_users{0};

// Handles are the index plus one, so that none is NULL.
nvmlDevice_t handle_of(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(index) + 1);
}

nvmlReturn_t describe(nvmlDevice_t device, simgpu_description& description) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  auto index = static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
  return driver_link().describe(index, &description) == 0 ? NVML_SUCCESS
                                                          : NVML_ERROR_INVALID_ARGUMENT;
}

// Bytes in use by this process; nothing where CUDA is not initialised in it.
std::uint64_t used_bytes(const simgpu_description& description, bool* has_context = nullptr) {
  simgpu_usage usage{};
  if (description.ordinal < 0 || driver_link().get_usage(description.ordinal, &usage) != 0)
    return 0;
  if (has_context != nullptr) *has_context = usage.context > 0;
  return usage.used;
}

int index_of(nvmlDevice_t device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

void uuid_text(const simgpu_description& description, char text[48]) {
  const unsigned char* u = description.uuid;
  std::snprintf(text, 48,
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                u[14], u[15]);
}

nvmlReturn_t copy_text(const char* text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text, bytes);
  return NVML_SUCCESS;
}

template <class Info>
nvmlReturn_t processes(nvmlDevice_t device, unsigned* count, Info* infos) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  bool has_context = false;
  std::uint64_t used = used_bytes(description, &has_context);
  unsigned room = *count;
  *count = has_context ? 1 : 0;
  if (!has_context) return NVML_SUCCESS;
  if (room == 0 || infos == nullptr) return NVML_ERROR_INSUFFICIENT_SIZE;
  infos[0] = {};
  infos[0].pid = static_cast<unsigned>(getpid());
  infos[0].usedGpuMemory = used;
  return NVML_SUCCESS;
}

nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *pci = {};
  pci->bus = static_cast<unsigned>(index_of(device)) + 1;
  std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
  return NVML_SUCCESS;
}

nvmlReturn_t by_pci(const char* text, nvmlDevice_t* device) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (text == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (domain != 0 || slot != 0 || bus == 0 ||
      bus > static_cast<unsigned>(driver_link().describe_count()))
    return NVML_ERROR_NOT_FOUND;
  *device = handle_of(bus - 1);
  return NVML_SUCCESS;
}

}  // namespace

// ---- library

NVML_EXPORT nvmlReturn_t nvmlInit_v2() {
  if (!driver_link().found()) return NVML_ERROR_DRIVER_NOT_LOADED;
  g_users.fetch_add(1);
  return NVML_SUCCESS;
}
NVML_EXPORT nvmlReturn_t nvmlInit() {
  return nvmlInit_v2();
}
NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned) {
  return nvmlInit_v2();
}

NVML_EXPORT nvmlReturn_t nvmlShutdown() {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  g_users.fetch_sub(1);
  return NVML_SUCCESS;
}

NVML_EXPORT const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned length) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  return copy_text("580.00.00", text, length);  // a branch that runs CUDA 13; no real build
}
NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return copy_text("13.580.00.00", text, length);
}
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  simgpu_description description;
  if (driver_link().describe == nullptr || driver_link().describe(0, &description) != 0)
    return NVML_ERROR_DRIVER_NOT_LOADED;
  *version = description.driver_version;
  return NVML_SUCCESS;
}
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

// ---- devices

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(driver_link().describe_count());
  return NVML_SUCCESS;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= static_cast<unsigned>(driver_link().describe_count()))
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = handle_of(index);
  return NVML_SUCCESS;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (g_users.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < driver_link().describe_count(); ++i) {
    simgpu_description description;
    char text[48];
    if (driver_link().describe(i, &description) != 0) continue;
    uuid_text(description, text);
    if (std::strcmp(text, uuid) != 0) continue;
    *device = handle_of(static_cast<unsigned>(i));
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvmlDevice_t* device) {
  return by_pci(text, device);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* text, nvmlDevice_t* device) {
  return by_pci(text, device);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(index_of(device));
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  return copy_text(description.name, name, length);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  char text[48];
  uuid_text(description, text);
  return copy_text(text, uuid, length);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return pci_info(device, pci);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return pci_info(device, pci);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major,
                                                            int* minor) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = description.major;
  *minor = description.minor;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}

// ---- memory and processes

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = description.total;
  memory->used = used_bytes(description);
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != (sizeof(nvmlMemory_v2_t) | (2U << 24)))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  memory->total = description.total;
  memory->reserved = 0;
  memory->used = used_bytes(description);
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                              nvmlProcessInfo_v1_t* infos) {
  return processes(device, count, infos);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_t* infos) {
  return processes(device, count, infos);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_t* infos) {
  return processes(device, count, infos);
}

// Nothing is drawn, and nothing shares the card.
namespace {

nvmlReturn_t no_processes(nvmlDevice_t device, unsigned* count) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                               nvmlProcessInfo_v1_t*) {
  return no_processes(device, count);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
                                                                  unsigned* count,
                                                                  nvmlProcessInfo_t*) {
  return no_processes(device, count);
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                                  unsigned* count,
                                                                  nvmlProcessInfo_t*) {
  return no_processes(device, count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current,
                                              unsigned* pending) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *current = *pending = 0;
  return NVML_SUCCESS;
}

// No kernel runs, so the card idles.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                       nvmlUtilization_t* utilization) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *utilization = {};
  return NVML_SUCCESS;
}

// From compute capability 9.0 on a card answers for its fabric: here that it has none. The version
// says how long the caller's structure is; all behind it is zero, and so is "not supported".
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, unsigned* info) {
  simgpu_description description;
  if (nvmlReturn_t result = describe(device, description); result != NVML_SUCCESS) return result;
  if (description.major < 9) return NVML_ERROR_NOT_SUPPORTED;
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned size = *info & 0xffffffU;
  if (size < 32 || size > 4096) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  std::memset(info + 1, 0, size - sizeof *info);
  return NVML_SUCCESS;
}
