// What lies where, at one instant. A MemoryState starts empty; apply() each event of a recording in
// order and it holds both ledgers as they were after that event.
//
//   driver   cudaMalloc ---------> physical allocation --+--> blocks of a caching allocator
//            cuMemCreate + map --> handle, mapping ------+    (then it is a segment)
//            pool's RESERVED ----> pool -> stream-ordered allocations
//                                          or nobody's: then it is a block itself ("direct")
//
// Bytes count once, at the driver's side. A physical allocation becomes a segment when the first
// block is cut out of it. So, for each device, always and exactly:
//
//   in_use = allocated + direct + cached
//
// The danger: events may be missing (dropped, or from before the recording). Nothing here trusts
// them; what does not fit is repaired the plainest way and counted in Anomalies.
#ifndef VRAMTRACK_ANALYZER_REPLAY_STATE_H
#define VRAMTRACK_ANALYZER_REPLAY_STATE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "replay/block.h"

namespace vramtrack {

// The sums of one device, kept up to date with each event.
struct DeviceTotals {
  uint64_t in_use = 0;     // what the driver handed out: allocations, handles, reserved pools
  uint64_t reserved = 0;   // of that, segments of a caching allocator
  uint64_t allocated = 0;  // of that, blocks in the hands of the program
  uint64_t requested = 0;  // the same as it was asked for (the block's size where unknown)
  uint64_t pending = 0;    // freed blocks whose streams are not done
  uint64_t direct = 0;     // live memory that no caching allocator manages
  uint64_t unbacked = 0;   // of allocated and pending: blocks in no known physical memory
  uint64_t modules = 0;    // device code and globals of loaded modules, where known; not in in_use
  uint64_t block_count = 0;
  bool has_blocks = false;  // a caching allocator has reported blocks on this device
  bool sampled = false;     // allocated, requested and pending are estimates

  // Handed out and in nobody's hands; `pending` is part of it.
  [[nodiscard]] uint64_t cached() const { return in_use > live() ? in_use - live() : 0; }
  // Bytes in the hands of the program, whoever cut them.
  [[nodiscard]] uint64_t live() const { return allocated + direct; }
};

// Memory that is not the device's.
struct HostTotals {
  uint64_t managed = 0;
  uint64_t pinned = 0;
  uint64_t registered = 0;
  uint64_t vmm_host = 0;
};

// What was measured from outside both ledgers, last.
struct Measurement {
  uint64_t time_ns = 0;
  uint64_t used = 0;          // total - free, all processes
  uint64_t total = 0;         // of the device
  uint64_t in_use = 0;        // our ledger at that instant, for the comparison
  uint64_t modules = 0;       // likewise
  uint64_t libraries = 0;     // of `used`, by a simulated card's estimate
  uint64_t process_used = 0;  // this process by NVML; 0 where it cannot be separated
  uint64_t others_used = 0;   // all other processes by NVML
  bool valid = false;         // a memory_sample was seen
  bool separable = false;     // a process_sample was seen
};

// What neither ledger explains: measured, not the remainder of anything at the moment shown.
struct Outside {
  uint64_t context = 0;   // used beyond the ledger when it was first measured
  Measurement last{};     // the newest measurement
  int64_t residual = 0;   // newest measurement - (ledger + modules' growth + context + libraries)
  bool measured = false;  // false: nothing was measured, context and residual mean nothing
};

// What did not fit while replaying. All zero for a complete recording.
struct Anomalies {
  uint64_t unknown_frees = 0;            // of an address where nothing is
  uint64_t overlapping_blocks = 0;       // a block where another one was still live
  uint64_t overlapping_physical = 0;     // the same of physical memory, without a free begun
  uint64_t blocks_without_segment = 0;   // cut out of nothing we know of
  uint64_t blocks_lost = 0;              // live in memory that the driver took back
  uint64_t witness_checks = 0;           // events that carried the allocator's own totals
  uint64_t witness_allocated_wrong = 0;  // ... that contradict ours
  uint64_t witness_reserved_wrong = 0;
  uint64_t unknown_devices = 0;  // device memory whose device the event did not say
};

// Told when blocks begin and end, for analyses that follow lifetimes. Direct allocations are told
// like blocks; one that turns out to be a segment ends with `became_segment`.
class BlockListener {
 public:
  enum class End { freed, became_segment, lost };

  virtual ~BlockListener() = default;
  virtual void block_begun(const Block& block) = 0;
  virtual void block_ended(const Block& block, const Event& event, End end) = 0;
};

class MemoryState {
 public:
  MemoryState();
  ~MemoryState();
  MemoryState(MemoryState&&) noexcept;
  MemoryState& operator=(MemoryState&&) noexcept;

  void apply(const Event& event);
  void set_listener(BlockListener* listener);  // not owned; nullptr: none

  // Of the last event.
  [[nodiscard]] uint64_t sequence() const;
  [[nodiscard]] uint64_t time_ns() const;
  [[nodiscard]] uint64_t step() const;   // kNoStep before the first
  [[nodiscard]] StringId phase() const;  // innermost open one of its thread, 0 none

  // Ordinals that appeared so far, ascending; -1 where CPU tensors were traced.
  [[nodiscard]] std::vector<int16_t> devices() const;
  [[nodiscard]] const DeviceTotals& totals(int16_t device) const;
  [[nodiscard]] const HostTotals& host() const;
  [[nodiscard]] Outside outside(int16_t device) const;
  [[nodiscard]] const Anomalies& anomalies() const;

  // Everything in the hands of the program: blocks and direct allocations of the device, by
  // address. Pending blocks are not among them. Their sizes sum to totals(device).live().
  void for_each_live(int16_t device, const std::function<void(const Block&)>& visit) const;
  // Managed, pinned and registered memory.
  void for_each_host(const std::function<void(const Block&)>& visit) const;
  // Segments with their blocks, by address. Their sizes sum to totals(device).reserved.
  [[nodiscard]] std::vector<Segment> segments(int16_t device) const;
  // The block or direct allocation that holds `address`, nullptr where none does.
  [[nodiscard]] const Block* find(uint64_t address) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_STATE_H
