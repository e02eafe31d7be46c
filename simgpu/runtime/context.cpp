#include "runtime/context.h"

#include <array>
#include <atomic>
#include <mutex>

#include "runtime/driver_table.h"
#include "runtime/error.h"

namespace simgpu {
namespace {

constexpr int kMostDevices = 64;

thread_local int thread_device = 0;

// The primary context of a device as this runtime knows it. `held` is null before the first use and
// after a reset; `last` stays, so that a thread that still has a reset context current can be told.
struct Primary {
  std::atomic<CUcontext> held{nullptr};
  std::atomic<CUcontext> last{nullptr};
};

std::array<Primary, kMostDevices> primaries;
std::mutex primary_guard;
std::atomic<unsigned> resets{0};
thread_local unsigned resets_seen = 0;

// Whether the thread's current context is a primary one that some thread has reset since.
bool was_reset(CUcontext current) {
  const unsigned now = resets.load(std::memory_order_acquire);
  if (resets_seen == now) return false;
  resets_seen = now;
  for (const Primary& primary : primaries) {
    if (primary.last.load() == current) return primary.held.load() == nullptr;
  }
  return false;
}

}  // namespace

cudaError_t enter_driver() {
  return driver().status;
}

cudaError_t primary_context(int device, CUcontext* context) {
  if (device < 0 || device >= kMostDevices) return cudaErrorInvalidDevice;
  Primary& primary = primaries[static_cast<size_t>(device)];
  *context = primary.held.load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  const std::lock_guard<std::mutex> lock(primary_guard);
  *context = primary.held.load(std::memory_order_relaxed);
  if (*context != nullptr) return cudaSuccess;
  const CUresult result = driver().plain.DevicePrimaryCtxRetain(context, device);
  if (result != CUDA_SUCCESS) return to_runtime(result);
  primary.last.store(*context);
  primary.held.store(*context, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t enter_context() {
  const cudaError_t status = enter_driver();
  if (status != cudaSuccess) return status;
  CUcontext current = nullptr;
  if (driver().plain.CtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
      !was_reset(current)) {
    return cudaSuccess;
  }
  const cudaError_t error = primary_context(thread_device, &current);
  if (error != cudaSuccess) return error;
  return to_runtime(driver().plain.CtxSetCurrent(current));
}

cudaError_t current_device(int* device) {
  const cudaError_t status = enter_driver();
  if (status != cudaSuccess) return status;
  if (device == nullptr) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  CUdevice of_context = 0;
  if (driver().plain.CtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
      driver().plain.CtxGetDevice(&of_context) == CUDA_SUCCESS) {
    *device = of_context;
  } else {
    *device = thread_device;
  }
  return cudaSuccess;
}

cudaError_t set_device(int device) {
  const cudaError_t status = enter_driver();
  if (status != cudaSuccess) return status;
  int count = 0;
  driver().plain.DeviceGetCount(&count);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  CUcontext context = nullptr;
  const cudaError_t error = primary_context(device, &context);
  if (error != cudaSuccess) return error;
  thread_device = device;
  return to_runtime(driver().plain.CtxSetCurrent(context));
}

cudaError_t reset_current_device() {
  int device = 0;
  const cudaError_t error = current_device(&device);
  if (error != cudaSuccess) return error;
  if (device >= kMostDevices) return cudaErrorInvalidDevice;
  const std::lock_guard<std::mutex> lock(primary_guard);
  thread_device = device;
  const CUresult result = driver().plain.DevicePrimaryCtxReset(device);
  primaries[static_cast<size_t>(device)].held.store(nullptr, std::memory_order_release);
  resets.fetch_add(1, std::memory_order_release);
  driver().plain.CtxSetCurrent(nullptr);
  return to_runtime(result);
}

}  // namespace simgpu
