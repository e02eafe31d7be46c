// Kernels. Of each thread the launch that follows an allocation is recorded, with the kernel's
// name: it is what the memory was most likely made for. Launches outside that only forward.
#include <atomic>
#include <cstring>

#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/pending_frees.h"
#include "hooks/real_functions.h"
#include "record/config.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

// Names by handle, in this file's string ids: handles of unloaded modules may come again under
// another name, so a look-up by name overwrites.
struct Name {
  std::atomic<uint64_t> handle{0};
  std::atomic<uint64_t> epoch_and_id{0};
};

constexpr size_t kNames = 1U << 14;
constexpr size_t kMaxProbes = 16;

constinit Name g_names[kNames];

uint64_t pack(uint32_t id) {
  return (static_cast<uint64_t>(recording_epoch()) << 32) | id;
}

size_t first_entry(uint64_t handle) {
  return static_cast<size_t>((handle * 0x9e3779b97f4a7c15) >> 50);
}

Name* entry_for(uint64_t handle) {
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    Name& entry = g_names[(first_entry(handle) + probe) % kNames];
    uint64_t seen = entry.handle.load(std::memory_order_relaxed);
    if (seen == 0 && entry.handle.compare_exchange_strong(seen, handle)) return &entry;
    if (seen == handle) return &entry;
  }
  return nullptr;
}

uint32_t known_name(const Name& entry) {
  const uint64_t value = entry.epoch_and_id.load(std::memory_order_relaxed);
  return value >> 32 == recording_epoch() ? static_cast<uint32_t>(value) : 0;
}

// cuLaunchKernel takes functions and kernels under one type.
const char* ask_driver(CUfunction function) {
  const DriverCalls& driver = driver_calls();
  const char* name = nullptr;
  if (driver.cuFuncGetName != nullptr && driver.cuFuncGetName(&name, function) == CUDA_SUCCESS &&
      name != nullptr)
    return name;
  if (driver.cuKernelGetName != nullptr &&
      driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS)
    return name;
  return nullptr;
}

uint32_t name_of(CUfunction function) {
  Name* entry = entry_for(reinterpret_cast<uint64_t>(function));
  if (entry != nullptr)
    if (const uint32_t id = known_name(*entry)) return id;
  const char* name = ask_driver(function);
  if (name == nullptr) return 0;
  const uint32_t id = intern_string(name);
  if (entry != nullptr) entry->epoch_and_id.store(pack(id), std::memory_order_relaxed);
  return id;
}

// Before the file exists there is nothing to define the name in: then the driver is asked later.
void remember(const void* handle, const char* name) {
  if (!config().kernels || recording_epoch() == 0 || name == nullptr || handle == nullptr) return;
  if (Name* entry = entry_for(reinterpret_cast<uint64_t>(handle)))
    entry->epoch_and_id.store(pack(intern_string(name)), std::memory_order_relaxed);
}

void launched(const Call& call, CUfunction function, CUstream stream) {
  forget_event_records();  // none of them belongs to a free
  if (!t_allocated || !config().kernels) return;
  t_allocated = false;
  Event event{.kind = EventKind::kernel,
              .device = current_device(),
              .stream = reinterpret_cast<uint64_t>(stream),
              .object = reinterpret_cast<uint64_t>(function),
              .text = name_of(function)};
  emit_without_stack(call, event);
}

}  // namespace

CUresult module_get_function(const Call& /*call*/,
                             CUresult (*real)(CUfunction*, CUmodule, const char*),
                             CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = real(function, module, name);
  if (result == CUDA_SUCCESS && function != nullptr) remember(*function, name);
  return result;
}

CUresult library_get_kernel(const Call& /*call*/,
                            CUresult (*real)(CUkernel*, CUlibrary, const char*), CUkernel* kernel,
                            CUlibrary library, const char* name) {
  const CUresult result = real(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel != nullptr) remember(*kernel, name);
  return result;
}

CUresult kernel_get_function(const Call& /*call*/, CUresult (*real)(CUfunction*, CUkernel),
                             CUfunction* function, CUkernel kernel) {
  const CUresult result = real(function, kernel);
  if (result != CUDA_SUCCESS || function == nullptr || recording_epoch() == 0) return result;
  Name* of_kernel = entry_for(reinterpret_cast<uint64_t>(kernel));
  const uint32_t id = of_kernel != nullptr ? known_name(*of_kernel) : 0;
  Name* of_function = id != 0 ? entry_for(reinterpret_cast<uint64_t>(*function)) : nullptr;
  if (of_function != nullptr) of_function->epoch_and_id.store(pack(id), std::memory_order_relaxed);
  return result;
}

CUresult launch_kernel(const Call& call,
                       CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**, void**),
                       CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream,
                       void** parameters, void** extra) {
  const CUresult result = real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  if (result == CUDA_SUCCESS) launched(call, function, stream);
  return result;
}

CUresult launch_kernel_ex(const Call& call,
                          CUresult (*real)(const CUlaunchConfig*, CUfunction, void**, void**),
                          const CUlaunchConfig* launch, CUfunction function, void** parameters,
                          void** extra) {
  const CUresult result = real(launch, function, parameters, extra);
  if (result == CUDA_SUCCESS && launch != nullptr) launched(call, function, launch->hStream);
  return result;
}

CUresult launch_cooperative_kernel(const Call& call,
                                   CUresult (*real)(CUfunction, unsigned, unsigned, unsigned,
                                                    unsigned, unsigned, unsigned, unsigned,
                                                    CUstream, void**),
                                   CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void** parameters) {
  const CUresult result = real(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  if (result == CUDA_SUCCESS) launched(call, function, stream);
  return result;
}

}  // namespace vramtrack
