// A job that is written down in a test: allocations under stacks shaped like PyTorch's, and what
// the rules say of them.
#ifndef VRAMTRACK_TESTS_ATTRIBUTION_JOB_H
#define VRAMTRACK_TESTS_ATTRIBUTION_JOB_H

#include <string>
#include <vector>

#include "attribution/rules.h"

namespace vramtrack {

inline constexpr uint32_t kMainThread = 1;
inline constexpr uint32_t kEngineThread = 2;

struct Call {
  std::vector<std::string> native;
  std::vector<std::string> python;  // "function@file" or "function@file:line"
  std::string module = {};          // the qualified name, where the Python helper told it
};

class Job final : public Recording {
 public:
  // Returns the block's address.
  uint64_t alloc(uint64_t size, const Call& call, uint32_t thread = kMainThread) {
    next_ += 1ull << 32;
    Event event{.kind = EventKind::block_alloc, .device = 0, .address = next_, .size = size};
    event.stack = stack_of(call);
    event.text = definitions_.intern(call.module);
    event.thread = thread;
    add(event);
    return next_;
  }
  void free(uint64_t address, uint32_t thread) {
    Event event{.kind = EventKind::block_free, .device = 0, .address = address};
    event.thread = thread;
    add(event);
  }
  // Straight from the driver, by a frame that lies in this library.
  uint64_t direct(uint64_t size, const std::string& library) {
    next_ += 1ull << 32;
    Event event{.kind = EventKind::physical_alloc, .device = 0, .address = next_, .size = size};
    event.memory = Memory::device;
    event.stack = definitions_.intern_stack(std::vector<FrameId>{
        definitions_.intern_frame({.function = "alloc", .module = "/usr/lib/" + library})});
    add(event);
    return next_;
  }
  // Imported: there before the recording began.
  uint64_t old(uint64_t size) {
    const uint64_t address = alloc(size, {});
    events_.back().stack = 0;
    events_.back().flags = kEventReconstructed | kEventForeignText;
    return address;
  }
  // Imported: a recorded allocation without any frame.
  uint64_t frameless(uint64_t size) {
    const uint64_t address = alloc(size, {});
    events_.back().stack = 0;
    events_.back().flags = kEventForeignText;
    return address;
  }
  void label(uint64_t address, uint64_t size, const std::string& name) {
    Event event{.kind = EventKind::label, .address = address, .size = size};
    event.text = definitions_.intern(name);
    add(event);
  }
  void push(const std::string& phase) {
    Event event{.kind = EventKind::phase_push};
    event.text = definitions_.intern(phase);
    event.thread = kMainThread;
    add(event);
  }
  void pop() {
    Event event{.kind = EventKind::phase_pop};
    event.thread = kMainThread;
    add(event);
  }
  void for_each(const std::function<bool(const Event&)>& visit) const override {
    for (const Event& event : events_)
      if (!visit(event)) return;
  }

  // What the block is, as seen right after the `events`-th event; now, if not given.
  [[nodiscard]] Verdict verdict(uint64_t address) const { return verdict(address, now()); }
  [[nodiscard]] Verdict verdict(uint64_t address, size_t events) const {
    const Timeline timeline = survey(*this);
    MemoryState state;
    for (size_t i = 0; i < events; ++i) state.apply(events_[i]);
    const Scene scene(*this, timeline, state);
    Verdict found{.reason = "no such block"};
    state.for_each_live(0, [&](const Block& block) {
      if (block.address == address) found = judge(block, scene);
    });
    return found;
  }
  [[nodiscard]] size_t now() const { return events_.size(); }

 private:
  StackId stack_of(const Call& call) {
    std::vector<FrameId> frames;
    for (const std::string& name : call.native)
      frames.push_back(definitions_.intern_frame({.function = name}));
    for (const std::string& text : call.python) {
      const size_t at = text.find('@');
      const size_t colon = text.find(':', at);
      Frame frame{.function = text.substr(0, at),
                  .file = text.substr(at + 1, colon - at - 1),
                  .python = true};
      if (colon != std::string::npos)
        frame.line = static_cast<uint32_t>(std::stoul(text.substr(colon + 1)));
      frames.push_back(definitions_.intern_frame(frame));
    }
    return definitions_.intern_stack(frames);
  }
  void add(Event event) {
    event.sequence = events_.size() + 1;
    events_.push_back(event);
  }

  std::vector<Event> events_;
  uint64_t next_ = 0;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TESTS_ATTRIBUTION_JOB_H
