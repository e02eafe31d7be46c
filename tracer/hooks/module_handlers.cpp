// Code on the device, and its variables. How many bytes the code takes the driver does not say; the
// measured memory outside both ledgers contains it. Of a variable it tells the size when it is
// looked up, which programs do often: each is recorded once, and ends with its module.
#include <atomic>
#include <cstring>

#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/kernel_functions.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

void loaded(const Call& call, const void* module) {
  Event event{.kind = EventKind::module_load,
              .device = current_device(),
              .object = reinterpret_cast<uint64_t>(module)};
  emit(call, event);
}

struct Variable {
  std::atomic<uint64_t> address{0};  // 0: free entry
  std::atomic<uint64_t> module{0};
  std::atomic<uint32_t> epoch{0};
};

constexpr size_t kMaxVariables = 1024;  // beyond it they stay in what is measured outside

constinit Variable g_variables[kMaxVariables];

bool is_new_variable(uint64_t address, uint64_t module) {
  const uint32_t epoch = recording_epoch();
  size_t free = kMaxVariables;
  for (size_t i = 0; i < kMaxVariables; ++i) {
    const Variable& v = g_variables[i];
    const uint64_t known = v.address.load(std::memory_order_relaxed);
    const bool current = known != 0 && v.epoch.load(std::memory_order_relaxed) == epoch;
    if (current && known == address && v.module.load(std::memory_order_relaxed) == module)
      return false;
    if (!current && free == kMaxVariables) free = i;
  }
  if (free == kMaxVariables) return false;
  Variable& v = g_variables[free];
  uint64_t seen = v.address.load(std::memory_order_relaxed);
  if (!v.address.compare_exchange_strong(seen, address)) return false;
  v.module.store(module, std::memory_order_relaxed);
  v.epoch.store(epoch, std::memory_order_relaxed);
  return true;
}

void looked_up(const Call& call, Memory memory, const CUdeviceptr* pointer, const size_t* bytes,
               const void* module, const char* name) {
  if (pointer == nullptr || bytes == nullptr || *pointer == 0) return;
  if (!is_new_variable(*pointer, reinterpret_cast<uint64_t>(module))) return;
  Event event{.kind = EventKind::physical_alloc,
              .memory = memory,
              .device = device_of_pointer(*pointer),
              .address = *pointer,
              .size = *bytes,
              .object = reinterpret_cast<uint64_t>(module)};
  event.extra = reinterpret_cast<uint64_t>(current_context());
  if (name != nullptr) event.text = intern_string({name, strnlen(name, kMaxStringBytes)});
  emit(call, event);
}

void forget_variables(const Call& call, uint64_t module) {
  for (Variable& v : g_variables) {
    if (v.module.load(std::memory_order_relaxed) != module) continue;
    const uint64_t address = v.address.exchange(0, std::memory_order_relaxed);
    v.module.store(0, std::memory_order_relaxed);
    if (address == 0 || v.epoch.load(std::memory_order_relaxed) != recording_epoch()) continue;
    Event event{.kind = EventKind::physical_free_end, .address = address};
    emit_without_stack(call, event);
  }
}

void unloaded(const Call& call, const void* module) {
  forget_kernels();
  forget_variables(call, reinterpret_cast<uint64_t>(module));
  Event event{.kind = EventKind::module_unload, .object = reinterpret_cast<uint64_t>(module)};
  emit(call, event);
}

}  // namespace

CUresult module_load(const Call& call, CUresult (*real)(CUmodule*, const char*), CUmodule* module,
                     const char* path) {
  const CUresult result = real(module, path);
  if (result == CUDA_SUCCESS && module != nullptr) loaded(call, *module);
  return result;
}

CUresult module_load_data(const Call& call, CUresult (*real)(CUmodule*, const void*),
                          CUmodule* module, const void* image) {
  const CUresult result = real(module, image);
  if (result == CUDA_SUCCESS && module != nullptr) loaded(call, *module);
  return result;
}

CUresult module_load_data_ex(
    const Call& call, CUresult (*real)(CUmodule*, const void*, unsigned, CUjit_option*, void**),
    CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  const CUresult result = real(module, image, count, options, values);
  if (result == CUDA_SUCCESS && module != nullptr) loaded(call, *module);
  return result;
}

CUresult module_unload(const Call& call, CUresult (*real)(CUmodule), CUmodule module) {
  const CUresult result = real(module);
  if (result == CUDA_SUCCESS) unloaded(call, module);
  return result;
}

CUresult library_load_data(const Call& call,
                           CUresult (*real)(CUlibrary*, const void*, CUjit_option*, void**,
                                            unsigned, CUlibraryOption*, void**, unsigned),
                           CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_values, unsigned jit_count, CUlibraryOption* options,
                           void** values, unsigned count) {
  const CUresult result =
      real(library, code, jit_options, jit_values, jit_count, options, values, count);
  if (result == CUDA_SUCCESS && library != nullptr) loaded(call, *library);
  return result;
}

CUresult library_load_from_file(const Call& call,
                                CUresult (*real)(CUlibrary*, const char*, CUjit_option*, void**,
                                                 unsigned, CUlibraryOption*, void**, unsigned),
                                CUlibrary* library, const char* path, CUjit_option* jit_options,
                                void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                void** values, unsigned count) {
  const CUresult result =
      real(library, path, jit_options, jit_values, jit_count, options, values, count);
  if (result == CUDA_SUCCESS && library != nullptr) loaded(call, *library);
  return result;
}

CUresult library_unload(const Call& call, CUresult (*real)(CUlibrary), CUlibrary library) {
  const CUresult result = real(library);
  if (result == CUDA_SUCCESS) unloaded(call, library);
  return result;
}

CUresult module_get_global(const Call& call,
                           CUresult (*real)(CUdeviceptr*, size_t*, CUmodule, const char*),
                           CUdeviceptr* pointer, size_t* bytes, CUmodule module, const char* name) {
  const CUresult result = real(pointer, bytes, module, name);
  if (result == CUDA_SUCCESS) looked_up(call, Memory::module_data, pointer, bytes, module, name);
  return result;
}

CUresult library_get_global(const Call& call,
                            CUresult (*real)(CUdeviceptr*, size_t*, CUlibrary, const char*),
                            CUdeviceptr* pointer, size_t* bytes, CUlibrary library,
                            const char* name) {
  const CUresult result = real(pointer, bytes, library, name);
  if (result == CUDA_SUCCESS) looked_up(call, Memory::module_data, pointer, bytes, library, name);
  return result;
}

CUresult library_get_managed(const Call& call,
                             CUresult (*real)(CUdeviceptr*, size_t*, CUlibrary, const char*),
                             CUdeviceptr* pointer, size_t* bytes, CUlibrary library,
                             const char* name) {
  const CUresult result = real(pointer, bytes, library, name);
  if (result == CUDA_SUCCESS) looked_up(call, Memory::managed, pointer, bytes, library, name);
  return result;
}

}  // namespace vramtrack
