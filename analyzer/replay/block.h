// A block: one live piece of memory and where it came from. What attribution judges, what reports
// list, what leaks are made of.
#ifndef VRAMTRACK_ANALYZER_REPLAY_BLOCK_H
#define VRAMTRACK_ANALYZER_REPLAY_BLOCK_H

#include <cstdint>

#include "trace/recording.h"

namespace vramtrack {

inline constexpr uint64_t kNoStep = ~uint64_t{0};  // before the first step event

// Ordinals beyond any machine come from damaged files; they count as unknown.
inline constexpr int16_t kMostDevices = 1024;
constexpr int16_t known_device(int16_t device) {
  return device >= 0 && device < kMostDevices ? device : int16_t{-1};
}

struct Block {
  enum class Origin : uint8_t {
    allocator,    // cut out of a segment by a caching allocator that reports its blocks
    driver,       // the driver's own: cudaMalloc, arrays, managed, pinned, registered
    stream_pool,  // cudaMallocAsync: nests in a pool's reserved bytes
    vmm,          // a cuMemCreate handle that serves no caching allocator
  };

  uint64_t address = 0;
  uint64_t size = 0;       // what it takes up
  uint64_t requested = 0;  // what was asked for, 0 unknown
  // Of a sampled recording: the bytes of blocks like this one that it stands for, 0 elsewhere.
  uint64_t stands_for = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;      // private pool (CUDA graphs, MemPool) or stream-ordered pool; 0 default
  uint64_t sequence = 0;  // of the event that made it: also its identity
  uint64_t time_ns = 0;
  uint64_t step = kNoStep;
  uint64_t label_bytes = 0;  // how much of it the label covers
  StackId stack = 0;
  StringId label = 0;   // the label that covers most of it
  StringId phase = 0;   // innermost phase that was open when it was made
  StringId module = 0;  // the nn.Module whose method ran, by its qualified name, if known
  StringId kernel = 0;  // the kernel its thread launched next
  StringId api = 0;     // the call that made it
  uint32_t thread = 0;
  uint32_t flags = 0;   // EventFlag
  int16_t device = -1;  // -1: host memory
  Memory memory = Memory::none;
  Origin origin = Origin::allocator;
  bool pending = false;  // freed by its owner, but a stream may still use it: cached, not allocated

  [[nodiscard]] uint64_t end() const { return address + size; }
  // What it adds to a sum: its size, or an estimate.
  [[nodiscard]] uint64_t bytes() const { return stands_for != 0 ? stands_for : size; }
  // The variance of that estimate. A block of `size` bytes is kept with a probability of
  // size / stands_for, independently of others.
  [[nodiscard]] double variance() const {
    if (stands_for <= size) return 0;
    return static_cast<double>(stands_for) * static_cast<double>(stands_for - size);
  }
  [[nodiscard]] uint64_t rounding() const {
    return requested != 0 && requested < size ? size - requested : 0;
  }
};

// A range that a caching allocator obtained from the driver and cuts blocks out of.
struct Segment {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;
  uint64_t sequence = 0;
  StackId stack = 0;
  int16_t device = -1;
  bool expandable = false;  // a run of mapped pages
  bool small_pool = false;
  bool captured = false;               // of a graph's private pool: served a captured stream
  uint64_t allocated = 0;              // bytes of live blocks in it
  uint64_t pending = 0;                // bytes of blocks that wait for their streams
  std::vector<const Block*> blocks{};  // live and pending, by address; valid until the next apply()

  [[nodiscard]] uint64_t end() const { return address + size; }
  [[nodiscard]] uint64_t free_bytes() const { return size - allocated - pending; }
  [[nodiscard]] bool releasable() const { return allocated == 0 && pending == 0; }
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_BLOCK_H
