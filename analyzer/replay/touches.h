// Who touches which block, and when: launches, copies and sets with the memory they were given,
// resolved against what is live at that moment. Only recordings made with --kernels on tell it.
//
// What is not seen: memory that a kernel reaches through addresses that lie in device memory
// (tables of pointers), and kernels whose parameters the driver did not describe.
#ifndef VRAMTRACK_ANALYZER_REPLAY_TOUCHES_H
#define VRAMTRACK_ANALYZER_REPLAY_TOUCHES_H

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/state.h"

namespace vramtrack {

// Copies and sets have no kernel; these ids stand for them.
inline constexpr StringId kCopyTouch = ~StringId{0};
inline constexpr StringId kSetTouch = kCopyTouch - 1;
// The name of a kernel as the recording has it (mangled), "memcpy" or "memset".
std::string_view toucher(const Definitions& definitions, StringId kernel);
// The same for people: demangled, without parameters and return type.
std::string toucher_title(const Definitions& definitions, StringId kernel);

// Launches, copies and sets so far: the clock by which a run is measured where it has no steps. On
// it nothing happens while the program waits or computes on the host.
using Work = uint64_t;
// Whether an event advances that clock.
bool is_work(const Event& event);

struct Touch {
  StringId kernel = 0;
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  uint64_t step = kNoStep;
  Work work = 0;
};

struct BlockTouches {
  uint64_t count = 0;  // launches, copies and sets
  Touch first;
  Touch last;
  // The longest stretch, by work, between two touches that follow each other.
  Touch idle_from;
  Touch idle_to;

  [[nodiscard]] Work idle_work() const { return idle_to.work - idle_from.work; }
};

class TouchLedger {
 public:
  explicit TouchLedger(const Definitions& definitions) : definitions_(definitions) {}

  // After state.apply(event).
  void apply(const Event& event, const MemoryState& state);
  [[nodiscard]] Work work() const { return work_; }
  // By the block's identity (Block::sequence). nullptr: never touched.
  [[nodiscard]] const BlockTouches* of(uint64_t block) const;
  void forget(uint64_t block) { touches_.erase(block); }

 private:
  // One kernel, copy or set of an executable graph.
  struct GraphWork {
    StringId kernel = 0;
    uint64_t list = 0;  // of addresses, 0: those below
    uint64_t address = 0;
    uint64_t other = 0;
  };

  void keep(const Event& event);
  void launch(const Event& event, const MemoryState& state);
  void touch_all(const GraphWork& work, const Event& event, const MemoryState& state);
  void touch(uint64_t address, StringId kernel, const Event& event, const MemoryState& state);

  const Definitions& definitions_;
  std::unordered_map<uint64_t, BlockTouches> touches_;
  std::unordered_map<uint64_t, std::vector<GraphWork>> graphs_;
  Work work_ = 0;
};

// Of the blocks that are live at one moment: all touches of their lives, those after it as well.
class TouchIndex {
 public:
  // One pass over the recording; `moment` is a sequence number.
  TouchIndex(const Recording& recording, uint64_t moment);

  [[nodiscard]] const BlockTouches* of(const Block& block) const;

 private:
  std::unordered_map<uint64_t, BlockTouches> touches_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_TOUCHES_H
