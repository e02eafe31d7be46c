// PyTorch's allocator reports each block to its profiler through exported functions of c10, without
// asking whether one runs. We stand in front of them, write the block down and pass the report on.
//
// The danger: a report for the GPU comes with the allocator's device mutex held. Nothing here takes
// the GIL, allocates, or calls back into the allocator. docs/decisions.md says where each field
// comes from.
#include <cuda_runtime_api.h>
#include <vramtrack/trace_format.h>

#include <atomic>

#include "hooks/capture.h"
#include "hooks/devices.h"
#include "hooks/emit.h"
#include "hooks/first_contact.h"
#include "hooks/loaded_objects.h"
#include "hooks/pending_frees.h"
#include "hooks/real_functions.h"
#include "hooks/sampling.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/live_blocks.h"
#include "record/live_totals.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/slice.h"
#include "stack/stack.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

namespace vramtrack {
namespace {

// c10::Device: type in the low byte, index in the next; passed in an integer register.
using TorchDevice = uint16_t;

constexpr int kTypeCpu = 0;
constexpr int kTypeCuda = 1;

int type_of(TorchDevice device) {
  return static_cast<int8_t>(device & 0xff);
}

int16_t index_of(TorchDevice device) {
  return static_cast<int8_t>(device >> 8);
}

// What the allocator was asked for by the request that it is working on in this thread; 0: not
// known. Set when it reads its rounding configuration, used by the next block it reports.
thread_local constinit uint64_t t_requested __attribute__((tls_model("initial-exec"))) = 0;

// c10::cuda::getCurrentCUDAStream(device) and CUDAStream::stream(), for the allocation that is
// being reported; looked up once.
struct CurrentStream {
  uint64_t device = 0;
  uint64_t id = 0;
};
using GetCurrentStream = CurrentStream (*)(int8_t);
using StreamHandle = void* (*)(const CurrentStream*);

struct StreamFunctions {
  GetCurrentStream current = nullptr;
  StreamHandle handle = nullptr;
};

constinit StreamFunctions g_stream_functions;
constinit std::atomic<uint32_t> g_stream_state{0};  // 1: looked up

const StreamFunctions& stream_functions() {
  if (g_stream_state.load(std::memory_order_acquire) == 1) return g_stream_functions;
  for_each_loaded_object([](const LoadedObject& object) {
    void* current = object.find("_ZN3c104cuda20getCurrentCUDAStreamEa");
    if (current == nullptr) return true;
    void* handle = object.find("_ZNK3c104cuda10CUDAStream6streamEv");
    g_stream_functions = {reinterpret_cast<GetCurrentStream>(current),
                          reinterpret_cast<StreamHandle>(handle)};
    return handle == nullptr;
  });
  g_stream_state.store(1, std::memory_order_release);
  return g_stream_functions;
}

uint64_t current_torch_stream(int16_t device) {
  const StreamFunctions& functions = stream_functions();
  if (functions.current == nullptr || functions.handle == nullptr) return 0;
  const CurrentStream stream = functions.current(static_cast<int8_t>(device));
  return reinterpret_cast<uint64_t>(functions.handle(&stream));
}

// The allocator serves a captured stream from the private pool of the graph. It asks the driver the
// same, with the same mutex held. The default stream is never captured.
bool in_capture(uint64_t stream) {
  const auto handle = reinterpret_cast<CUstream>(stream);
  return handle != nullptr && handle != CU_STREAM_LEGACY && is_captured(handle);
}

void block_allocated(Event& event, bool on_gpu) {
  event.kind = EventKind::block_alloc;
  if (on_gpu) {
    event.requested = t_requested;
    if (event.requested != 0) event.flags |= kEventRequestedKnown;
    t_requested = 0;
    event.stream = current_torch_stream(event.device);
    if (in_capture(event.stream)) event.flags |= kEventCaptured;
    see_device(event.device);
    forget_event_records();
  }
  if (!keep_allocation(event)) return;
  event.stack = capture_stack();
  event.text = captured_module();
  record(event);
  live_block_added(event.address, event.size, event.stack);
  t_allocated = true;
}

void block_freed(Event& event, bool on_gpu) {
  event.kind = EventKind::block_free;
  if (!keep_free(event)) return forget_event_records();
  if (on_gpu && begin_pending_free(event.address, event.device)) event.flags |= kEventPendingFree;
  record(event);
  live_block_removed(event.address);
}

void report_usage(const void* pointer, int64_t size, uint64_t allocated, uint64_t reserved,
                  TorchDevice device) {
  const Guard guard;
  const bool on_gpu = type_of(device) == kTypeCuda;
  const bool traced = on_gpu || (type_of(device) == kTypeCpu && config().cpu);
  if (!guard.outermost() || !ready() || !traced || size == 0) return;
  first_contact();
  Event event{.device = on_gpu ? index_of(device) : kNoDevice,
              .address = reinterpret_cast<uint64_t>(pointer),
              .size = static_cast<uint64_t>(size < 0 ? -size : size),
              .witness_allocated = allocated,
              .witness_reserved = reserved};
  count_live(event.device, size);
  if (on_gpu) sample_changed_libraries();
  if (size > 0)
    block_allocated(event, on_gpu);
  else
    block_freed(event, on_gpu);
  if (on_gpu) sample_memory_if_due();
}

void report_out_of_memory(int64_t size, uint64_t allocated, uint64_t reserved, TorchDevice device) {
  const Guard guard;
  if (!guard.outermost() || !ready() || type_of(device) != kTypeCuda) return;
  first_contact();
  sample_memory();
  Event event{.kind = EventKind::out_of_memory,
              .device = index_of(device),
              .size = static_cast<uint64_t>(size),
              .requested = t_requested,
              .witness_allocated = allocated,
              .witness_reserved = reserved};
  if (event.requested != 0) event.flags |= kEventRequestedKnown;
  t_requested = 0;
  event.stack = capture_stack();
  record(event);
}

// Remembers what the caching allocator was asked for; it asks for its rounding before it searches.
template <class Real>
uint64_t note_request(Real real, uint64_t size) {
  t_requested = size;
  return real(size);
}

}  // namespace
}  // namespace vramtrack

// ---- c10: memory reports

#define REAL(name) \
  reinterpret_cast<decltype(&name)>(vramtrack::real_for_caller(vramtrack::Hook::name, CALLER))

// CPU tensors are reported only while a profiler asks for them, or we do.
EXPORTED bool _ZN3c1022memoryProfilingEnabledEv() {
  if (vramtrack::ready() && vramtrack::config().cpu) return true;
  const auto real = REAL(_ZN3c1022memoryProfilingEnabledEv);
  return real != nullptr && real();
}

// Since 2.0: pointer, signed size, allocated, reserved, device.
EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* pointer, int64_t size,
                                                                    uint64_t allocated,
                                                                    uint64_t reserved,
                                                                    uint16_t device) {
  vramtrack::report_usage(pointer, size, allocated, reserved, device);
  if (const auto real = REAL(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE))
    real(pointer, size, allocated, reserved, device);
}

// 1.13: the totals were signed.
EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void* pointer, int64_t size,
                                                                    int64_t allocated,
                                                                    int64_t reserved,
                                                                    uint16_t device) {
  vramtrack::report_usage(pointer, size, static_cast<uint64_t>(allocated),
                          static_cast<uint64_t>(reserved), device);
  if (const auto real = REAL(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE))
    real(pointer, size, allocated, reserved, device);
}

// 1.7: without totals; the pointer is a block's descriptor, which identifies it as well.
EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void* pointer, int64_t size,
                                                                  uint16_t device) {
  vramtrack::report_usage(pointer, size, 0, 0, device);
  if (const auto real = REAL(_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE))
    real(pointer, size, device);
}

EXPORTED void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t size, uint64_t allocated,
                                                                  uint64_t reserved,
                                                                  uint16_t device) {
  vramtrack::report_out_of_memory(size, allocated, reserved, device);
  if (const auto real = REAL(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE))
    real(size, allocated, reserved, device);
}

EXPORTED void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t size, int64_t allocated,
                                                                  int64_t reserved,
                                                                  uint16_t device) {
  vramtrack::report_out_of_memory(size, static_cast<uint64_t>(allocated),
                                  static_cast<uint64_t>(reserved), device);
  if (const auto real = REAL(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE))
    real(size, allocated, reserved, device);
}

EXPORTED void _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(uint64_t size, uint64_t allocated,
                                                                  uint64_t reserved,
                                                                  uint16_t device) {
  vramtrack::report_out_of_memory(static_cast<int64_t>(size), allocated, reserved, device);
  if (const auto real = REAL(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE))
    real(size, allocated, reserved, device);
}

// ---- c10: the request behind the next block

EXPORTED uint64_t
_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm(uint64_t size) {
  const auto real =
      REAL(_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm);
  return real != nullptr ? vramtrack::note_request(real, size) : 0;
}

EXPORTED uint64_t
_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm(uint64_t size) {
  const auto real =
      REAL(_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm);
  return real != nullptr ? vramtrack::note_request(real, size) : 0;
}
