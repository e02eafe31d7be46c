#include "cupti/witness.h"

#include <time.h>
#include <unistd.h>
#include <vramtrack/trace_format.h>

#include <atomic>

#include "cupti/buffers.h"
#include "cupti/clock.h"
#include "cupti/functions.h"
#include "cupti/records.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/text.h"
#include "stack/stack.h"

// Of the C++ ABI. A handler without a library is not run when ours is finalised.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library);

namespace vramtrack {
namespace {

enum State : uint32_t { kOff, kStarting, kRunning, kEnding, kDone };

constinit std::atomic<uint32_t> g_state{kOff};
constinit CuptiFunctions g_cupti;
constinit uint32_t g_version = 0;
constinit pid_t g_process = 0;
constinit CUpti_SubscriberHandle g_subscriber = nullptr;
constinit uint64_t g_started_ns = 0;  // CUPTI's clock
constinit bool g_pinned_was_set = false;
constinit uint8_t g_pinned_before = 0;
constinit std::atomic<bool> g_told_of_start{false};
constinit std::atomic<bool> g_wanted_by_program{false};
// What the trace is to say once there is one.
constinit char g_start_text[512] = {};
constinit char g_unavailable_text[512] = {};

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_MEMORY2,
                                         CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};

void note(CuptiNote what, const char* text, uint64_t time_ns, uint64_t lost = 0) {
  Event event{.kind = EventKind::cupti_note,
              .size = lost,
              .extra = time_ns,
              .text = intern_string(text),
              .result = static_cast<int32_t>(what)};
  record(event);
}

// With the first event of the witness: a process that never uses the GPU leaves no file.
void tell_of_start() {
  if (g_told_of_start.exchange(true, std::memory_order_relaxed)) return;
  if (!ensure_running()) return;
  measure_cupti_clock(g_cupti);
  note(CuptiNote::started, g_start_text, trace_time_of(g_started_ns));
}

void CUPTIAPI buffer_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = take_cupti_buffer();
  *size = *buffer != nullptr ? kCuptiBufferBytes : 0;
  *most_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer,
                               size_t /*size*/, size_t valid_bytes) {
  const Guard guard;
  if (valid_bytes != 0 && wanted()) {
    tell_of_start();
    record_activities(g_cupti, g_version, buffer, valid_bytes);
  }
  give_back_cupti_buffer(buffer);
}

// A driver function returned. Inside one of our hooks its event follows; outside, nobody else saw
// the call, and here is where it came from.
void CUPTIAPI call_returned(void* /*user*/, CUpti_CallbackDomain domain, CUpti_CallbackId /*id*/,
                            const void* data) {
  const Guard guard;
  if (!guard.outermost() || domain != CUPTI_CB_DOMAIN_DRIVER_API || !wanted()) return;
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_EXIT || call.functionName == nullptr) return;
  tell_of_start();
  Event event{.kind = EventKind::cupti_call,
              .requested = call.correlationId,
              .stack = capture_stack(),
              .api = intern_string(call.functionName)};
  if (call.functionReturnValue != nullptr)
    event.result = static_cast<int32_t>(*static_cast<const CUresult*>(call.functionReturnValue));
  record(event);
}

void enable_callbacks() {
#define MEMORY_CALL(name)                                                  \
  g_cupti.cuptiEnableCallback(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, \
                              CUPTI_DRIVER_TRACE_CBID_##name);
#include "cupti/memory_calls.def"
#undef MEMORY_CALL
}

// CUPTI's own buffers for kernels lie on the device otherwise, and would be memory that we caused.
void keep_off_the_device() {
  if (g_cupti.cuptiActivitySetAttribute == nullptr) return;
  size_t size = sizeof g_pinned_before;
  if (g_cupti.cuptiActivityGetAttribute != nullptr)
    g_cupti.cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size,
                                      &g_pinned_before);
  uint8_t pinned = 1;
  size = sizeof pinned;
  g_pinned_was_set =
      g_cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size,
                                        &pinned) == CUPTI_SUCCESS;
}

void restore_attributes() {
  if (!g_pinned_was_set) return;
  size_t size = sizeof g_pinned_before;
  g_cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size,
                                    &g_pinned_before);
}

bool complete(const CuptiFunctions& cupti) {
  return cupti.cuptiSubscribe != nullptr && cupti.cuptiUnsubscribe != nullptr &&
         cupti.cuptiEnableCallback != nullptr && cupti.cuptiActivityEnable != nullptr &&
         cupti.cuptiActivityDisable != nullptr && cupti.cuptiActivityFlushAll != nullptr &&
         cupti.cuptiActivityRegisterCallbacks != nullptr &&
         cupti.cuptiActivityGetNextRecord != nullptr && cupti.cuptiGetTimestamp != nullptr;
}

// Why not, or nullptr.
const char* attach() {
  const CUptiResult subscribed = g_cupti.cuptiSubscribe(&g_subscriber, call_returned, nullptr);
  if (subscribed == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
      subscribed == CUPTI_ERROR_MAX_LIMIT_REACHED)
    return "another tool has subscribed to CUPTI already";
  if (subscribed != CUPTI_SUCCESS) {
    const char* text = nullptr;
    if (g_cupti.cuptiGetResultString != nullptr) g_cupti.cuptiGetResultString(subscribed, &text);
    return text != nullptr ? text : "it cannot be subscribed to";
  }
  g_cupti.cuptiGetTimestamp(&g_started_ns);
  keep_off_the_device();
  bool any = false;
  if (g_cupti.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed) == CUPTI_SUCCESS)
    for (const CUpti_ActivityKind kind : kKinds)
      any = g_cupti.cuptiActivityEnable(kind) == CUPTI_SUCCESS || any;
  if (!any) {
    restore_attributes();
    g_cupti.cuptiUnsubscribe(g_subscriber);
    return "it records neither memory nor kernels on this machine";
  }
  enable_callbacks();
  if (g_cupti.cuptiActivityEnableAllocationSource != nullptr)
    g_cupti.cuptiActivityEnableAllocationSource(1);
  return nullptr;
}

uint64_t lost_records() {
  size_t lost = 0;
  if (g_cupti.cuptiActivityGetNumDroppedRecords != nullptr)
    g_cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost);
  return lost;
}

// Gives everything back; the library is afterwards as if nobody had used it.
void detach(CuptiNote what, const char* text) {
  if (g_told_of_start.load(std::memory_order_relaxed)) measure_cupti_clock(g_cupti);
  for (const CUpti_ActivityKind kind : kKinds) g_cupti.cuptiActivityDisable(kind);
  g_cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (g_cupti.cuptiActivityEnableAllocationSource != nullptr)
    g_cupti.cuptiActivityEnableAllocationSource(0);
  restore_attributes();
  const uint64_t lost = lost_records();
  g_cupti.cuptiUnsubscribe(g_subscriber);
  if (!is_running()) return;
  tell_of_start();
  note(what, text, trace_time_ns(), lost);
}

// Bounded: a program that must wait longer goes on, and CUPTI tells it that there are two.
void wait_while(State state) {
  for (int i = 0; i < 2000 && g_state.load(std::memory_order_acquire) == state; ++i) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

// A child of fork has our state and may call none of it: CUPTI, like CUDA, is of no use there.
bool running_here() {
  return g_state.load(std::memory_order_acquire) == kRunning && g_process == getpid();
}

bool end_running() {
  uint32_t running = kRunning;
  return running_here() && g_state.compare_exchange_strong(running, kEnding);
}

// Registered after CUPTI and the driver have registered theirs, and therefore run before those.
void process_ends(void* /*unused*/) {
  const Guard guard;
  if (!end_running()) return;
  detach(CuptiNote::ended, "the process ends");
  g_state.store(kDone, std::memory_order_release);
}

__attribute__((destructor)) void library_ends() {
  const Guard guard;
  if (g_unavailable_text[0] != '\0' && is_running())
    note(CuptiNote::unavailable, g_unavailable_text, 0);
}

}  // namespace

void cupti_unavailable(const char* why) {
  Text(g_unavailable_text, sizeof g_unavailable_text).add("no second witness: ").add(why);
  FixedText<640> line;
  line.add("--cupti: ").add(why).add("; tracing goes on without it");
  say(line.c_str());
}

void start_cupti(const CuptiAddresses& addresses, const char* library) {
  const CuptiFunctions cupti = typed(addresses);
  uint32_t off = kOff;
  if (!g_state.compare_exchange_strong(off, kStarting)) return;
  FixedText<512> why;
  if (g_wanted_by_program.load(std::memory_order_acquire)) {
    why.add("the program uses CUPTI itself");
  } else if (!complete(cupti)) {
    why.add(library).add(" lacks functions of CUDA 11.8");
  } else {
    g_cupti = cupti;
    if (cupti.cuptiGetVersion != nullptr) cupti.cuptiGetVersion(&g_version);
    Text(g_start_text, sizeof g_start_text)
        .add("CUPTI ")
        .add(uint64_t{g_version})
        .add(", ")
        .add(library);
    if (const char* refusal = attach()) why.add(library).add(": ").add(refusal);
    g_process = getpid();
  }
  if (why.size() != 0)
    cupti_unavailable(why.c_str());
  else
    __cxa_atexit(process_ends, nullptr, nullptr);
  g_state.store(why.size() == 0 ? kRunning : kDone, std::memory_order_release);
}

void step_aside_from_cupti(const char* function) {
  g_wanted_by_program.store(true, std::memory_order_release);
  const uint32_t state = g_state.load(std::memory_order_acquire);
  if (state == kOff || state == kDone) return;
  wait_while(kStarting);
  if (end_running()) {
    FixedText<128> text;
    text.add("the program called ").add(function);
    detach(CuptiNote::stepped_aside, text.c_str());
    g_state.store(kDone, std::memory_order_release);
  }
  wait_while(kEnding);
}

void flush_cupti() {
  if (!running_here()) return;
  if (g_told_of_start.load(std::memory_order_relaxed)) measure_cupti_clock(g_cupti);
  g_cupti.cuptiActivityFlushAll(0);
}

// Handlers run in the reverse order of their registration, and CUPTI or the driver may register
// more of theirs with the first context.
void cupti_context_created() {
  static constinit std::atomic<bool> registered{false};
  if (running_here() && !registered.exchange(true, std::memory_order_relaxed))
    __cxa_atexit(process_ends, nullptr, nullptr);
}

void cupti_after_fork_child() {
  if (g_state.load(std::memory_order_relaxed) != kOff)
    g_state.store(kDone, std::memory_order_relaxed);
}

}  // namespace vramtrack
