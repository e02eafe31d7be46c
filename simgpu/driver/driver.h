// The driver's state: devices, contexts, streams and events, and the tables of handles.
//
// Danger: a child of fork. It shares no state with its parent, must be told so by every function
// (CUDA_ERROR_NOT_INITIALIZED, as on a card), and must take no lock that was held when it was born.
// Every entry therefore begins with require_init() or enter(), which read one word of a page that
// the kernel wipes in a child.
#ifndef SIMGPU_DRIVER_DRIVER_H
#define SIMGPU_DRIVER_DRIVER_H

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "address_space.h"
#include "api.h"
#include "contents.h"
#include "device_models.h"
#include "handles.h"
#include "ledger.h"
#include "library_estimates.h"

namespace simgpu {

struct Context;
struct Stream;
struct Pool;
struct Capture;
struct GraphNode;

struct Device {
  Device(int number, const DeviceModel& card)
      : ordinal(number), model(card), ledger(number, card.total_bytes) {}

  int ordinal;
  DeviceModel model;
  Ledger ledger;
  LibraryMemory libraries;
  std::mutex mutex;  // the primary context's count
  Context* primary = nullptr;
  unsigned primary_flags = 0;
  int primary_retains = 0;
  Pool* default_pool = nullptr;
  std::atomic<Pool*> current_pool{nullptr};
  std::atomic<int> idle_chunks{0};  // of pools: nothing lives in them
  // Graph memory: what launched graphs hold, and its high-water marks.
  std::atomic<std::uint64_t> graph_used{0}, graph_used_high{0}, graph_reserved{0},
      graph_reserved_high{0};
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  std::atomic<bool> active{false};
  std::atomic<std::uint64_t> generation{0};  // rises when the context dies; its streams with it
  std::atomic<unsigned> flags{0};
  std::uint64_t id = 0;
  unsigned api_version = 3020;
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};
  Stream* legacy_stream = nullptr;
  std::uint64_t estimated_bytes = 0;
  std::mutex peers_mutex;
  std::set<Context*> peers;
};

struct Stream {
  Context* context = nullptr;
  std::uint64_t generation = 0;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  bool implicit = false;  // the legacy or a per-thread default stream
  // Late events: what was recorded, and up to where it is done.
  std::atomic<std::uint64_t> recorded{0}, completed{0};
  std::atomic<std::uint64_t> host_ticket{0};  // latest host function, see host_tasks.h
  // Capture; the pointer is read without a lock by every launch.
  std::atomic<Capture*> capture{nullptr};
  std::vector<GraphNode*> dependencies;  // guarded by the capture's lock
  std::mutex attributes_mutex;
  std::map<int, CUlaunchAttributeValue> attributes;

  bool alive() const {
    return context->active.load(std::memory_order_relaxed) &&
           generation == context->generation.load(std::memory_order_relaxed);
  }
};

struct Event {
  Context* context = nullptr;
  std::uint64_t generation = 0;
  unsigned flags = 0;
  bool imported = false;
  std::atomic<bool> recorded{false};
  std::atomic<std::uint64_t> time_ns{0};
  std::atomic<Stream*> stream{nullptr};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<int> queries_left{0};
  std::atomic<std::uint64_t> host_ticket{0};
  // Recorded in a capture: which, and what a waiting stream would depend on.
  std::atomic<std::uint64_t> capture_id{0};
  std::vector<GraphNode*> capture_dependencies;  // guarded by the capture lock
};

struct Tables;  // the handles of the remaining subjects, tables.h

struct Driver {
  std::vector<std::unique_ptr<Device>> devices;
  HandleTable<Context, CUcontext, 1 << 16> contexts;
  HandleTable<Stream, CUstream, 1 << 16> streams;
  HandleTable<Event, CUevent> events;
  AddressSpace addresses;
  Contents contents;
  Tables* tables = nullptr;
  int version = 0;
  std::uint64_t late_seed = 0;  // 0: events complete at once
};

struct ThreadState {
  static constexpr int kDepth = 64;
  Context* stack[kDepth];
  int depth;
  CUstreamCaptureMode capture_mode;
  Context* stream_context;  // of the cached per-thread default stream
  Stream* stream;
};

extern Driver* g_driver;  // set once, never destroyed: programs call at exit, too
extern std::atomic<const std::atomic<std::uint32_t>*> g_ready;
extern thread_local ThreadState t_state;

inline Driver& driver() {
  return *g_driver;
}
inline ThreadState& thread_state() {
  return t_state;
}

CUresult why_not_ready();
inline CUresult require_init() {
  return likely(g_ready.load(std::memory_order_acquire)->load(std::memory_order_relaxed) == 1)
             ? CUDA_SUCCESS
             : why_not_ready();
}

inline Context* current_context() {
  const ThreadState& state = t_state;
  return state.depth > 0 ? state.stack[state.depth - 1] : nullptr;
}

// The entry of every function that works in the current context.
inline CUresult enter(Context*& context) {
  SIMGPU_TRY(require_init());
  context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load(std::memory_order_relaxed)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return CUDA_SUCCESS;
}

CUresult find_device(CUdevice ordinal, Device*& device);
bool can_access_peer(const Device* device, const Device* peer);
std::uint64_t next_id();

// The stream behind a handle: NULL and CU_STREAM_LEGACY are the context's legacy stream,
// CU_STREAM_PER_THREAD this thread's own.
CUresult find_stream(CUstream handle, Context* context, Stream*& stream);
Stream* per_thread_stream(Context* context);
Stream* new_stream(Context* context, unsigned flags, int priority, bool implicit);
// Waits for host functions and completes the events of one stream, of a context.
void complete_stream(Stream* stream);
void complete_context(Context* context);
CUresult find_event(CUevent handle, Event*& event);

// Activation and end of contexts; the ledger is charged with the estimate.
CUresult activate_context(Context* context);
void end_context(Context* context);

// Strictly increasing, in nanoseconds.
std::uint64_t next_timestamp();

void assume(const char* operation, std::uint64_t count = 1);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_DRIVER_H
