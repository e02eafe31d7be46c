// Contexts: what was allocated in one ends with it. Also cuInit, where a process begins to use the
// driver.
#include <atomic>

#include "cupti/witness.h"
#include "hooks/cupti_hooks.h"
#include "hooks/devices.h"
#include "hooks/handlers.h"
#include "hooks/pools.h"
#include "hooks/real_functions.h"
#include "record/recorder.h"

namespace vramtrack {
namespace {

constexpr CUdevice kMaxDevices = 64;

// The primary context of each device while it is known to exist in this file: it is retained many
// times and created once.
struct Primary {
  std::atomic<uint64_t> context{0};
  std::atomic<uint32_t> epoch{0};
};

constinit Primary g_primary[kMaxDevices];

bool is_known(CUdevice device) {
  return device >= 0 && device < kMaxDevices;
}

void context_event(const Call& call, EventKind kind, uint64_t context, int16_t device) {
  Event event{.kind = kind, .device = device, .object = context};
  emit(call, event);
}

void created(const Call& call, CUcontext context, CUdevice device) {
  see_device(static_cast<int16_t>(device));
  context_event(call, EventKind::context_create, reinterpret_cast<uint64_t>(context),
                static_cast<int16_t>(device));
  cupti_context_created();
}

void primary_ended(const Call& call, CUdevice device) {
  const uint64_t context = g_primary[device].context.exchange(0, std::memory_order_relaxed);
  if (context != 0)
    context_event(call, EventKind::context_destroy, context, static_cast<int16_t>(device));
}

}  // namespace

CUresult init(const Call& /*call*/, CUresult (*real)(unsigned), unsigned flags) {
  const CUresult result = real(flags);
  if (result == CUDA_SUCCESS) start_cupti_if_wanted();
  return result;
}

CUresult primary_ctx_retain(const Call& call, CUresult (*real)(CUcontext*, CUdevice),
                            CUcontext* context, CUdevice device) {
  const CUresult result = real(context, device);
  if (result != CUDA_SUCCESS || context == nullptr || !is_known(device)) return result;
  Primary& primary = g_primary[device];
  const auto handle = reinterpret_cast<uint64_t>(*context);
  if (primary.context.load(std::memory_order_relaxed) == handle &&
      primary.epoch.load(std::memory_order_relaxed) == recording_epoch())
    return result;
  created(call, *context, device);
  primary.context.store(handle, std::memory_order_relaxed);
  primary.epoch.store(recording_epoch(), std::memory_order_relaxed);
  return result;
}

CUresult primary_ctx_release(const Call& call, CUresult (*real)(CUdevice), CUdevice device) {
  const CUresult result = real(device);
  if (result != CUDA_SUCCESS || !is_known(device)) return result;
  const DriverCalls& driver = driver_calls();
  unsigned flags = 0;
  int active = 1;
  if (driver.cuDevicePrimaryCtxGetState != nullptr &&
      driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0)
    primary_ended(call, device);
  return result;
}

CUresult primary_ctx_reset(const Call& call, CUresult (*real)(CUdevice), CUdevice device) {
  flush_cupti();
  const CUresult result = real(device);
  if (result != CUDA_SUCCESS || !is_known(device)) return result;
  primary_ended(call, device);
  Event event{.kind = EventKind::device_reset, .device = static_cast<int16_t>(device)};
  emit(call, event);
  update_all_pools(call);
  return result;
}

CUresult ctx_create(const Call& call, CUresult (*real)(CUcontext*, unsigned, CUdevice),
                    CUcontext* context, unsigned flags, CUdevice device) {
  const CUresult result = real(context, flags, device);
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  created(call, *context, device);
  sample_memory();
  return result;
}

CUresult ctx_create_v3(const Call& call,
                       CUresult (*real)(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice),
                       CUcontext* context, CUexecAffinityParam* affinity, int count, unsigned flags,
                       CUdevice device) {
  const CUresult result = real(context, affinity, count, flags, device);
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  created(call, *context, device);
  sample_memory();
  return result;
}

#if CUDA_VERSION >= 12050
CUresult ctx_create_v4(const Call& call,
                       CUresult (*real)(CUcontext*, CUctxCreateParams*, unsigned, CUdevice),
                       CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                       CUdevice device) {
  const CUresult result = real(context, parameters, flags, device);
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  created(call, *context, device);
  sample_memory();
  return result;
}
#endif

CUresult ctx_destroy(const Call& call, CUresult (*real)(CUcontext), CUcontext context) {
  flush_cupti();
  const CUresult result = real(context);
  if (result == CUDA_SUCCESS)
    context_event(call, EventKind::context_destroy, reinterpret_cast<uint64_t>(context), kNoDevice);
  return result;
}

}  // namespace vramtrack
