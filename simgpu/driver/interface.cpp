// The functions of simgpu.h that ask the driver's state.
#include "copy.h"
#include "driver.h"
#include "tables.h"

using namespace simgpu;

int simgpu_get_usage(int ordinal, struct simgpu_usage* usage) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (usage == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *usage = device->ledger.usage();
  return CUDA_SUCCESS;
}

int simgpu_device_count(void) {
  return require_init() == CUDA_SUCCESS ? static_cast<int>(driver().devices.size()) : 0;
}

const char* simgpu_device_model(int ordinal) {
  Device* device;
  return find_device(ordinal, device) == CUDA_SUCCESS ? device->model.key : nullptr;
}

int simgpu_get_library_estimate(int ordinal, const char* library,
                                struct simgpu_library_estimate* estimate) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (library == nullptr || estimate == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *estimate = library_estimate(device->model, library);
  return CUDA_SUCCESS;
}

int simgpu_open_library(int ordinal, const char* library, uint64_t bytes) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return device->libraries.open(device->model, device->ledger, library, bytes);
}

void simgpu_close_library(int ordinal, const char* library, uint64_t bytes) {
  Device* device;
  if (library == nullptr || find_device(ordinal, device) != CUDA_SUCCESS) return;
  device->libraries.close(device->model, device->ledger, library, bytes);
}

uint64_t simgpu_library_bytes(int ordinal) {
  Device* device;
  return find_device(ordinal, device) == CUDA_SUCCESS ? device->ledger.usage().library : 0;
}

int simgpu_is_device_address(uint64_t address) {
  return require_init() == CUDA_SUCCESS && driver().addresses.contains(address) ? 1 : 0;
}

void simgpu_write(uint64_t address, const void* data, size_t size) {
  if (simgpu_is_device_address(address) != 0) write_contents(address, data, size);
}

size_t simgpu_read(uint64_t address, void* data, size_t size) {
  if (simgpu_is_device_address(address) == 0) return 0;
  return read_contents(address, data, size, nullptr);
}

void simgpu_forget(uint64_t address, size_t size) {
  if (simgpu_is_device_address(address) != 0) forget_contents(address, size);
}

int simgpu_declare_global(void* library, const char* name, size_t size) {
  return declare_global(library, name, size);
}
