// PyTorch's native caching allocator as a machine without memory: it takes requests and frees, and
// answers with addresses, segments and reserved bytes. What the real one would have done under
// other settings is asked here.
//
// Written from the documented behaviour: pools for small and large requests, each keyed by stream;
// best fit among the free blocks of the stream; a rest is cut off or not by should_split(); freed
// blocks merge with free neighbours; whole segments go back to the driver only when memory runs
// out or somebody empties the cache; expandable segments grow page by page instead.
//
// The danger is drift: one wrong tie-break and everything after it differs. replay/allocator_replay
// therefore checks every address and every segment event against a recording before anybody
// believes a prediction.
#ifndef VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_SIMULATOR_H
#define VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_SIMULATOR_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "import/allocator_settings.h"

namespace vramtrack {

struct SimulatedPool;
struct ExpandableRange;

struct SimulatedBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t requested = 0;
  uint64_t stream = 0;
  uint64_t birth = 0;     // of its segment, where the oldest is preferred; else 0
  uint64_t age_mark = 0;  // allocations served when it was last put into its pool
  SimulatedPool* pool = nullptr;
  ExpandableRange* range = nullptr;  // null: a segment of its own from the driver
  SimulatedBlock* prev = nullptr;    // neighbours within the segment
  SimulatedBlock* next = nullptr;
  bool allocated = false;
  bool pending = false;  // freed, its streams not done
  bool mapped = true;    // false: address space only

  [[nodiscard]] bool is_free() const { return !allocated && !pending; }
  [[nodiscard]] bool is_split() const { return prev != nullptr || next != nullptr; }
};

struct SimulatedPool {
  struct BySize {
    bool operator()(const SimulatedBlock* a, const SimulatedBlock* b) const {
      if (a->stream != b->stream) return a->stream < b->stream;
      if (a->size != b->size) return a->size < b->size;
      if (a->birth != b->birth) return a->birth < b->birth;
      return a->address < b->address;
    }
  };
  struct ByAddress {
    bool operator()(const SimulatedBlock* a, const SimulatedBlock* b) const {
      if (a->stream != b->stream) return a->stream < b->stream;
      return a->address < b->address;
    }
  };
  uint64_t id = 0;  // 0: the default pool
  bool small = false;
  std::set<SimulatedBlock*, BySize> free;
  std::set<SimulatedBlock*, ByAddress> unmapped;
};

// The address space of one expandable segment.
struct ExpandableRange {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t page = 0;  // bytes that are mapped at a time
};

struct SegmentChange {
  enum class Kind : uint8_t { alloc, free, map, unmap };
  Kind kind = Kind::alloc;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
};

// Which of several free blocks of equal size is taken. The version decides: PyTorch 2.4 takes the
// lowest address, 2.15 the segment that was made first (both as recorded runs show).
enum class TieBreak : uint8_t { lowest_address, oldest_segment };

class AllocatorSimulator {
 public:
  struct Limits {
    uint64_t device_bytes = ~uint64_t{0};  // what the driver can give this allocator
    uint64_t fraction_bytes = 0;           // set_per_process_memory_fraction; 0: not set
  };
  // Where the driver puts a segment or an address range; nullptr: a place of the simulator's own.
  using Place = std::function<uint64_t(uint64_t size, bool expandable_range)>;
  using Observer = std::function<void(const SegmentChange&)>;

  explicit AllocatorSimulator(AllocatorSettings settings);
  AllocatorSimulator(AllocatorSettings settings, Limits limits);

  void set_place(Place place) { place_ = std::move(place); }
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  void set_tie_break(TieBreak tie_break) { tie_break_ = tie_break; }

  // What is there before the first request: a segment, then the blocks in it that are in use,
  // ascending. `expandable` segments are mapped runs of one range per pool and stream.
  void add_segment(uint64_t address, uint64_t size, uint64_t stream, uint64_t pool, bool small,
                   bool expandable);
  SimulatedBlock* add_block(uint64_t address, uint64_t size, uint64_t requested);

  // nullptr: out of memory, after everything that could be released was.
  SimulatedBlock* allocate(uint64_t requested, uint64_t stream, uint64_t pool);
  void free_requested(SimulatedBlock* block);
  void free_completed(SimulatedBlock* block);
  // torch.cuda.empty_cache(), and what the allocator does itself before it gives up.
  void release_cached();

  [[nodiscard]] uint64_t reserved() const { return reserved_; }
  [[nodiscard]] uint64_t reserved_peak() const { return reserved_peak_; }
  [[nodiscard]] uint64_t allocated() const { return allocated_; }
  [[nodiscard]] uint64_t driver_calls() const { return driver_calls_; }
  [[nodiscard]] uint64_t retries() const { return retries_; }
  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }

 private:
  struct Request {
    uint64_t rounded;
    uint64_t requested;
    uint64_t stream;
    SimulatedPool* pool;
  };

  SimulatedPool& pool_of(uint64_t id, bool small);
  SimulatedBlock* make_block(uint64_t address, uint64_t size, uint64_t stream, SimulatedPool* pool);
  void discard(SimulatedBlock* block);
  void put_free(SimulatedBlock* block);
  SimulatedBlock* find_free(const Request& request);
  SimulatedBlock* new_segment(const Request& request);
  SimulatedBlock* serve(SimulatedBlock* block, const Request& request);
  void free_block(SimulatedBlock* block);
  void merge(SimulatedBlock* into, SimulatedBlock* neighbour);
  void release_pool(SimulatedPool& pool);
  void release_segment(SimulatedBlock* block);
  bool release_enough(const Request& request);
  void collect_garbage();
  bool fits(uint64_t bytes) const;
  void changed(SegmentChange::Kind kind, uint64_t address, uint64_t size, uint64_t stream);
  uint64_t place(uint64_t size, bool expandable_range);
  uint64_t next_birth() { return tie_break_ == TieBreak::oldest_segment ? ++births_ : 0; }

  // allocator_expandable.cpp
  SimulatedBlock* grow(const Request& request);
  SimulatedBlock* find_growth(const Request& request);
  SimulatedBlock* new_range(const Request& request);
  bool map(SimulatedBlock* block, uint64_t size);
  void unmap(SimulatedBlock* block);
  void add_mapped_run(uint64_t address, uint64_t size, uint64_t stream, SimulatedPool& pool);

  AllocatorSettings settings_;
  Limits limits_;
  Place place_;
  Observer observer_;
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<SimulatedPool>> pools_;
  std::deque<SimulatedBlock> blocks_;  // stable addresses
  std::vector<SimulatedBlock*> spare_;
  std::deque<ExpandableRange> ranges_;
  std::map<uint64_t, SimulatedBlock*> starts_;  // free blocks of add_segment(), by address
  uint64_t next_address_ = uint64_t{1} << 40;
  uint64_t reserved_ = 0;
  uint64_t reserved_peak_ = 0;
  uint64_t allocated_ = 0;
  TieBreak tie_break_ = TieBreak::lowest_address;
  uint64_t births_ = 0;
  uint64_t served_ = 0;
  uint64_t driver_calls_ = 0;
  uint64_t retries_ = 0;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_SIMULATOR_H
