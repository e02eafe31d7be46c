// Contexts: the primary one of each device, own ones, and the stack of each thread.
#include <algorithm>

#include "driver.h"
#include "tables.h"

namespace simgpu {
namespace {

constexpr std::size_t kDefaultStack = 1024;
constexpr std::size_t kDefaultPrintf = std::size_t{7} << 20;
constexpr std::size_t kDefaultHeap = std::size_t{8} << 20;

void reset_limits(Context* context) {
  for (auto& limit : context->limits) limit = 0;
  context->limits[CU_LIMIT_STACK_SIZE] = kDefaultStack;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = kDefaultPrintf;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = kDefaultHeap;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

CUresult push(Context* context) {
  ThreadState& state = thread_state();
  if (state.depth == ThreadState::kDepth) return CUDA_ERROR_OUT_OF_MEMORY;
  state.stack[state.depth++] = context;
  return CUDA_SUCCESS;
}

CUresult find_context(CUcontext handle, Context*& context) {
  SIMGPU_TRY(require_init());
  context = driver().contexts.find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult create(CUcontext* handle, unsigned flags, CUdevice ordinal, unsigned api_version) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Context* context = driver().contexts.create();
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->device = device;
  context->flags = flags;
  context->api_version = api_version;
  CUresult result = activate_context(context);
  if (result == CUDA_SUCCESS) result = push(context);
  if (result != CUDA_SUCCESS) {
    driver().contexts.destroy(context);
    return result;
  }
  *handle = driver().contexts.handle(context);
  return CUDA_SUCCESS;
}

// The last release and the reset of a primary context.
void end_primary(Device* device) {
  if (device->primary->active.load()) end_context(device->primary);
  device->primary_retains = 0;
}

}  // namespace

CUresult activate_context(Context* context) {
  Device* device = context->device;
  context->estimated_bytes = device->model.context_bytes;
  SIMGPU_TRY(
      device->ledger.charge(Kind::kContext, context->estimated_bytes, "context (estimate)", 0));
  reset_limits(context);
  context->id = next_id();
  context->active = true;
  if (context->legacy_stream == nullptr)
    context->legacy_stream = new_stream(context, CU_STREAM_DEFAULT, 0, true);
  context->legacy_stream->generation = context->generation;
  return CUDA_SUCCESS;
}

void end_context(Context* context) {
  complete_context(context);
  release_context_memory(context);
  release_context_modules(context);
  context->generation.fetch_add(1);
  context->active = false;
  {
    std::lock_guard lock(context->peers_mutex);
    context->peers.clear();
  }
  Device* device = context->device;
  if (context->primary) device->libraries.end_context(device->ledger);
  device->ledger.credit(Kind::kContext, context->estimated_bytes, "context (estimate)", 0);
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  if (!device->primary->active.load()) {
    device->primary->flags = device->primary_flags;
    SIMGPU_TRY(activate_context(device->primary));
  }
  ++device->primary_retains;
  *handle = driver().contexts.handle(device->primary);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  std::lock_guard lock(device->mutex);
  if (device->primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_retains == 0) end_primary(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  std::lock_guard lock(device->mutex);
  end_primary(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
  return cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  device->primary_flags = flags;
  device->primary->flags = flags;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->mutex);
  *flags = device->primary_flags;
  *active = device->primary->active.load() ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* handle, unsigned int flags, CUdevice ordinal) {
  return create(handle, flags, ordinal, 3020);
}
CUresult cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam*, int, unsigned int flags,
                        CUdevice ordinal) {
  return create(handle, flags, ordinal, 3020);
}
CUresult cuCtxCreate_v4(CUcontext* handle, CUctxCreateParams*, unsigned int flags,
                        CUdevice ordinal) {
  return create(handle, flags, ordinal, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  Context* context;
  SIMGPU_TRY(find_context(handle, context));
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  end_context(context);
  // Current to this thread: popped. To others it stays current and answers "destroyed"; the handle
  // is therefore never recycled.
  ThreadState& state = thread_state();
  if (state.depth > 0 && state.stack[state.depth - 1] == context) --state.depth;
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext handle) {
  return cuCtxDestroy_v2(handle);
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  Context* context;
  SIMGPU_TRY(find_context(handle, context));
  return push(context);
}
CUresult cuCtxPushCurrent(CUcontext handle) {
  return cuCtxPushCurrent_v2(handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  SIMGPU_TRY(require_init());
  Context* context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  --thread_state().depth;
  if (handle != nullptr) *handle = driver().contexts.handle(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* handle) {
  return cuCtxPopCurrent_v2(handle);
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  SIMGPU_TRY(require_init());
  ThreadState& state = thread_state();
  if (handle == nullptr) {
    if (state.depth > 0) --state.depth;
    return CUDA_SUCCESS;
  }
  Context* context;
  SIMGPU_TRY(find_context(handle, context));
  if (state.depth == 0) return push(context);
  state.stack[state.depth - 1] = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
  SIMGPU_TRY(require_init());
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = current_context();
  *handle = context == nullptr ? nullptr : driver().contexts.handle(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* ordinal) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (ordinal == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ordinal = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* ordinal, CUcontext handle) {
  if (handle == nullptr) return cuCtxGetDevice(ordinal);
  Context* context;
  SIMGPU_TRY(find_context(handle, context));
  if (ordinal == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ordinal = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  context->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  SIMGPU_TRY(require_init());
  Context* context = current_context();
  if (handle != nullptr) SIMGPU_TRY(find_context(handle, context));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  SIMGPU_TRY(require_init());
  Context* context = current_context();
  if (handle != nullptr) SIMGPU_TRY(find_context(handle, context));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  Context* context;
  SIMGPU_TRY(enter(context));
  SIMGPU_TRY(refuse_in_capture());
  complete_context(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  if (handle == nullptr) return cuCtxSynchronize();
  Context* context;
  SIMGPU_TRY(find_context(handle, context));
  if (!context->active.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  SIMGPU_TRY(refuse_in_capture());
  complete_context(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (value == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (limit < 0) return CUDA_ERROR_INVALID_VALUE;
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY) value = std::min<std::size_t>(value, 128);
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = context->cache_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  Context* context;
  SIMGPU_TRY(enter(context));
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  Context* context;
  return enter(context);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() {
  Context* context;
  return enter(context);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  affinity->type = type;
  affinity->param.smCount.val = static_cast<unsigned>(context->device->model.multiprocessors);
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Context* peer;
  SIMGPU_TRY(find_context(handle, peer));
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
  if (!can_access_peer(context->device, peer->device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  std::lock_guard lock(context->peers_mutex);
  return context->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Context* peer;
  SIMGPU_TRY(find_context(handle, peer));
  std::lock_guard lock(context->peers_mutex);
  return context->peers.erase(peer) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
