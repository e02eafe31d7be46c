// Code on the device. How many bytes it takes the driver does not say; the measured memory outside
// both ledgers contains it.
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

void loaded(const Call& call, const void* module) {
  Event event{.kind = EventKind::module_load,
              .device = current_device(),
              .object = reinterpret_cast<uint64_t>(module)};
  emit(call, event);
}

void unloaded(const Call& call, const void* module) {
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

}  // namespace vramtrack
