#include "diagnosis/witness/collect.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "attribution/call_site.h"

namespace vramtrack {
namespace {

// Calls under way while CUPTI begins or ends may be in either ledger.
constexpr uint64_t kEdgeNs = 1'000'000;

// What one side cannot see, and why. The index is an ExceptionKind.
enum ExceptionKind : size_t { kVirtual, kRegistered, kGraph, kStatic, kExceptionKinds };

struct ExceptionText {
  const char* what;
  const char* reason;
};

constexpr std::array<ExceptionText, kExceptionKinds> kExceptions = {{
    {"virtual memory (cuMemCreate)", "CUPTI has no record for handles and mappings"},
    {"registered host memory (cuMemHostRegister)", "CUPTI has no record for it"},
    {"memory nodes of graphs", "CUPTI has no record for them"},
    {"static variables of device code", "each side tells of them at another moment"},
}};

// The library that asked: the innermost frame outside CUDA's own libraries and ours.
std::string asking_library(const Definitions& definitions, StackId stack) {
  for (const FrameId id : definitions.stack(stack)) {
    const Frame& frame = definitions.frame(id);
    if (frame.python || frame.module.empty()) continue;
    std::string name = file_name(frame.module);
    if (!is_cuda_library(name)) return name;
  }
  return "(unknown)";
}

class Collector {
 public:
  explicit Collector(const Definitions& definitions) : definitions_(definitions) {}

  void see(const Event& event);
  Ledgers take();

 private:
  struct Live {
    Memory memory;
    uint64_t size;
    int16_t device;
  };

  void note(const Event& event);
  void hook_allocation(const Event& event);
  void hook_release(const Event& event);
  void cupti_memory(const Event& event);
  void except(ExceptionKind kind) { ++excepted_[kind]; }
  void name(Operation& operation, const Event& event);
  void keep_span();
  void explain();

  const Definitions& definitions_;
  Ledgers ledgers_;
  std::array<uint64_t, kExceptionKinds> excepted_{};
  std::unordered_map<uint64_t, Live> live_;  // what the hooks saw allocated
  std::unordered_map<uint64_t, Event>
      begins_;  // address -> first half of its free: it has the stack
  std::unordered_map<StackId, std::string> libraries_;
  uint64_t last_cupti_ns_ = 0;
};

void Collector::name(Operation& operation, const Event& event) {
  operation.stack = event.stack;
  operation.api = definitions_.string(event.api);
  auto [known, fresh] = libraries_.try_emplace(event.stack);
  if (fresh) known->second = asking_library(definitions_, event.stack);
  operation.library = known->second;
}

void Collector::note(const Event& event) {
  WitnessSpan& span = ledgers_.span;
  const std::string text(definitions_.string(event.text));
  switch (static_cast<CuptiNote>(event.result)) {
    case CuptiNote::started:
      span.ran = true;
      span.begin_ns = event.extra;
      span.started = text;
      return;
    case CuptiNote::stepped_aside:
    case CuptiNote::ended:
      span.stepped_aside = static_cast<CuptiNote>(event.result) == CuptiNote::stepped_aside;
      span.closed = true;
      span.end_ns = event.extra;
      span.ended = text;
      span.lost_records += event.size;
      return;
    case CuptiNote::unavailable:
      span.unavailable = text;
      return;
  }
}

void Collector::hook_allocation(const Event& event) {
  if (event.address == 0) return;  // nothing was asked for
  if (event.memory == Memory::registered) return except(kRegistered);
  if (event.memory == Memory::graph || (event.flags & kEventCaptured) != 0) return except(kGraph);
  if (event.memory == Memory::module_data ||
      definitions_.string(event.api) == "cuLibraryGetManaged")
    return except(kStatic);
  Operation operation;
  operation.memory = event.memory;
  operation.device = event.device;
  operation.address = event.address;
  operation.size = event.size;
  operation.time_ns = event.time_ns;
  name(operation, event);
  live_[event.address] = {event.memory, event.size, event.device};
  ledgers_.hooks.push_back(std::move(operation));
}

// A release counts once it succeeded; the stack stands at its beginning.
void Collector::hook_release(const Event& event) {
  const auto began = begins_.find(event.address);
  const Event begin = began != begins_.end() ? began->second : event;
  if (began != begins_.end()) begins_.erase(began);
  if (event.result != 0) return;
  const auto live = live_.find(event.address);
  if (live == live_.end()) return;  // an exception, or from before the recording
  Operation operation;
  operation.allocation = false;
  operation.memory = live->second.memory;
  operation.device = live->second.device;
  operation.address = event.address;
  operation.size = live->second.size;
  operation.time_ns = begin.time_ns;
  name(operation, begin);
  live_.erase(live);
  ledgers_.hooks.push_back(std::move(operation));
}

void Collector::cupti_memory(const Event& event) {
  last_cupti_ns_ = std::max(last_cupti_ns_, event.extra);
  if (event.memory == Memory::module_data) return except(kStatic);
  Operation operation;
  operation.allocation = event.result == 1;
  operation.memory = event.memory;
  operation.device = event.device;
  operation.address = event.address;
  operation.size = event.size;
  operation.time_ns = event.extra;
  operation.correlation = event.requested;
  operation.api = "(unknown)";
  operation.library =
      event.text != 0 ? file_name(definitions_.string(event.text)) : std::string("(unknown)");
  ledgers_.cupti.push_back(std::move(operation));
}

void Collector::see(const Event& event) {
  switch (event.kind) {
    case EventKind::physical_alloc:
      return hook_allocation(event);
    case EventKind::physical_free_begin:
      begins_[event.address] = event;
      return;
    case EventKind::physical_free_end:
      return hook_release(event);
    case EventKind::handle_create:
      return except(kVirtual);
    case EventKind::cupti_memory:
      return cupti_memory(event);
    case EventKind::cupti_pool:
      ++ledgers_.pool_operations;
      return;
    case EventKind::cupti_kernel:
      ++ledgers_.kernels;
      last_cupti_ns_ = std::max(last_cupti_ns_, event.extra);
      return;
    case EventKind::cupti_call: {
      if (event.result != 0) return;
      Operation asked;
      name(asked, event);
      ledgers_.calls.push_back(
          {asked.api, asked.library, event.stack, event.requested, event.result});
      return;
    }
    case EventKind::cupti_note:
      return note(event);
    default:
      return;
  }
}

// What the hooks saw while CUPTI did not watch says nothing about either.
void Collector::keep_span() {
  WitnessSpan& span = ledgers_.span;
  if (!span.closed) span.end_ns = last_cupti_ns_;
  const auto outside = [&span](const Operation& operation) {
    return operation.time_ns + kEdgeNs < span.begin_ns ||
           operation.time_ns > (span.closed ? span.end_ns : span.end_ns + kEdgeNs);
  };
  ledgers_.outside_span = std::erase_if(ledgers_.hooks, outside);
}

// A record of CUPTI's names no function. Where none of our hooks saw the call, its callback did.
void Collector::explain() {
  std::unordered_map<uint64_t, const UnseenCall*> by_correlation;
  for (const UnseenCall& call : ledgers_.calls) by_correlation[call.correlation] = &call;
  std::unordered_map<uint64_t, bool> used;
  for (Operation& operation : ledgers_.cupti) {
    const auto call = by_correlation.find(operation.correlation);
    if (operation.correlation == 0 || call == by_correlation.end()) continue;
    operation.api = call->second->api;
    operation.stack = call->second->stack;
    if (operation.library == "(unknown)") operation.library = call->second->library;
    used[operation.correlation] = true;
  }
  std::erase_if(ledgers_.calls,
                [&used](const UnseenCall& call) { return used.contains(call.correlation); });
}

Ledgers Collector::take() {
  keep_span();
  explain();
  for (size_t kind = 0; kind < kExceptionKinds; ++kind)
    if (excepted_[kind] != 0)
      ledgers_.exceptions.push_back(
          {kExceptions[kind].what, kExceptions[kind].reason, excepted_[kind]});
  return std::move(ledgers_);
}

}  // namespace

Ledgers collect_ledgers(const Recording& recording) {
  Collector collector(recording.definitions());
  recording.for_each([&collector](const Event& event) {
    collector.see(event);
    return true;
  });
  return collector.take();
}

}  // namespace vramtrack
