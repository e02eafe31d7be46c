#include "replay/touches.h"

#include <cxxabi.h>

#include <cstdlib>

namespace vramtrack {
namespace {

// Graphs of one job; a damaged file must not make more of them.
constexpr size_t kMostGraphWork = 1U << 20;

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = text != nullptr && status == 0 ? text : name;
  std::free(text);
  return result;
}

// Where the parameters of a demangled function begin: its last bracket that is not inside <>.
size_t parameters_of(std::string_view name) {
  int angles = 0;
  int rounds = 0;
  for (size_t at = name.size(); at-- > 0;) {
    const char c = name[at];
    if (c == '>' && (at == 0 || name[at - 1] != '-')) ++angles;
    if (c == '<') --angles;
    if (c == ')') ++rounds;
    if (c == '(' && --rounds == 0 && angles == 0) return at;
  }
  return std::string_view::npos;
}

StringId kernel_of(const Event& event) {
  if (event.kind == EventKind::memcpy_call) return kCopyTouch;
  return event.kind == EventKind::memset_call ? kSetTouch : event.text;
}

// Tells what ended, so that the ledger can forget it.
class Ends : public BlockListener {
 public:
  Ends(TouchLedger& ledger, uint64_t moment, std::unordered_map<uint64_t, BlockTouches>& kept)
      : ledger_(ledger), moment_(moment), kept_(kept) {}
  void block_begun(const Block& /*block*/) override {}
  void block_ended(const Block& block, const Event& event, End /*end*/) override {
    const BlockTouches* touches = ledger_.of(block.sequence);
    if (touches != nullptr && block.sequence <= moment_ && event.sequence > moment_)
      kept_.emplace(block.sequence, *touches);
    ledger_.forget(block.sequence);
  }

 private:
  TouchLedger& ledger_;
  uint64_t moment_;
  std::unordered_map<uint64_t, BlockTouches>& kept_;
};

}  // namespace

std::string_view toucher(const Definitions& definitions, StringId kernel) {
  if (kernel == kCopyTouch) return "memcpy";
  if (kernel == kSetTouch) return "memset";
  return definitions.string(kernel);
}

std::string toucher_title(const Definitions& definitions, StringId kernel) {
  const std::string name = demangled(std::string(toucher(definitions, kernel)));
  std::string title = name.substr(0, parameters_of(name));
  if (title.starts_with("void ")) title.erase(0, 5);
  return title;
}

bool is_work(const Event& event) {
  if ((event.flags & kEventGraphNode) != 0) return false;
  return event.kind == EventKind::kernel_access || event.kind == EventKind::memcpy_call ||
         event.kind == EventKind::memset_call || event.kind == EventKind::graph_launch;
}

void TouchLedger::apply(const Event& event, const MemoryState& state) {
  if (is_work(event)) ++work_;
  switch (event.kind) {
    case EventKind::kernel_access:
    case EventKind::memcpy_call:
    case EventKind::memset_call:
      return (event.flags & kEventGraphNode) != 0 ? keep(event) : launch(event, state);
    case EventKind::graph_launch:
      if (const auto graph = graphs_.find(event.object); graph != graphs_.end())
        for (const GraphWork& work : graph->second) touch_all(work, event, state);
      return;
    case EventKind::graph_instantiate:
    case EventKind::graph_exec_destroy:
      graphs_.erase(event.object);
      return;
    default:
      return;
  }
}

void TouchLedger::keep(const Event& event) {
  std::vector<GraphWork>& graph = graphs_[event.object];
  if (graph.size() >= kMostGraphWork) return;
  const bool has_list = event.kind == EventKind::kernel_access;
  graph.push_back({.kernel = kernel_of(event),
                   .list = has_list ? event.extra : 0,
                   .address = event.address,
                   .other = has_list ? 0 : event.extra});
}

void TouchLedger::launch(const Event& event, const MemoryState& state) {
  const bool has_list = event.kind == EventKind::kernel_access;
  touch_all({.kernel = kernel_of(event),
             .list = has_list ? event.extra : 0,
             .address = event.address,
             .other = has_list ? 0 : event.extra},
            event, state);
}

void TouchLedger::touch_all(const GraphWork& work, const Event& event, const MemoryState& state) {
  if (const KernelAccess* access = definitions_.access(work.list)) {
    for (const uint64_t address : access->addresses) touch(address, work.kernel, event, state);
  }
  for (const uint64_t address : {work.address, work.other})
    if (address != 0) touch(address, work.kernel, event, state);
}

void TouchLedger::touch(uint64_t address, StringId kernel, const Event& event,
                        const MemoryState& state) {
  const Block* block = state.find(address);
  if (block == nullptr) return;
  BlockTouches& touches = touches_[block->sequence];
  const Touch now{kernel, event.sequence, event.time_ns, state.step(), work_};
  if (touches.count == 0) {
    touches.first = touches.last = touches.idle_from = touches.idle_to = now;
    touches.count = 1;
    return;
  }
  // A second address in the same block is the same touch; within a graph the last kernel counts.
  if (touches.last.sequence != event.sequence) {
    ++touches.count;
    if (now.work - touches.last.work > touches.idle_work()) {
      touches.idle_from = touches.last;
      touches.idle_to = now;
    }
  }
  touches.last = now;
}

const BlockTouches* TouchLedger::of(uint64_t block) const {
  const auto found = touches_.find(block);
  return found == touches_.end() ? nullptr : &found->second;
}

TouchIndex::TouchIndex(const Recording& recording, uint64_t moment) {
  TouchLedger ledger(recording.definitions());
  MemoryState state;
  Ends ends(ledger, moment, touches_);
  state.set_listener(&ends);
  recording.for_each([&](const Event& event) {
    state.apply(event);
    ledger.apply(event, state);
    return true;
  });
  for (const int16_t device : state.devices())
    state.for_each_live(device, [&](const Block& block) {
      const BlockTouches* touches = ledger.of(block.sequence);
      if (touches != nullptr && block.sequence <= moment)
        touches_.emplace(block.sequence, *touches);
    });
}

const BlockTouches* TouchIndex::of(const Block& block) const {
  const auto found = touches_.find(block.sequence);
  return found == touches_.end() ? nullptr : &found->second;
}

}  // namespace vramtrack
