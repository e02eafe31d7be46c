// The physical ledger: what the driver handed out and has not got back.
//
//   allocations   one range each. A free counts when it has ended, or when memory that overlaps it
//                 is handed out: a free may block while other threads allocate, and may fail
//   VMM           bytes belong to handles, and last until neither a reference nor a mapping is
//                 left; mappings form runs of addresses without holes
//   pools         a pool holds its reserved bytes; stream-ordered allocations lie inside
//
// What a caching allocator cuts blocks out of is claimed, and is a segment from then on.
#ifndef VRAMTRACK_ANALYZER_REPLAY_PHYSICAL_LEDGER_H
#define VRAMTRACK_ANALYZER_REPLAY_PHYSICAL_LEDGER_H

#include <map>
#include <set>
#include <unordered_map>

#include "replay/address_map.h"
#include "replay/totals.h"

namespace vramtrack {

// An allocation of the driver. `Block::origin` is driver or stream_pool.
struct PhysicalAllocation : Block {
  uint64_t context = 0;
  uint32_t freeing_thread = 0;
  bool freeing = false;  // a free has begun and not ended
  bool claimed = false;  // a segment
};

// A VMM handle. Its `address` is that of a mapping, once it has one.
struct Handle : Block {
  uint64_t object = 0;
  uint32_t references = 0;
  uint32_t mappings = 0;
  bool claimed = false;
};

struct Mapping {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t handle = 0;  // number of the Handle in the ledger; 0: owned elsewhere
};

// Mapped addresses without a hole.
struct Run {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;
  uint64_t sequence = 0;
  StackId stack = 0;
  uint32_t flags = 0;
  int16_t device = -1;
  bool claimed = false;
  bool owns_bytes = false;  // from a snapshot: no handles are known, the pages count themselves
};

struct Reservation {
  uint64_t address = 0;
  uint64_t size = 0;
  bool claimed = false;
};

struct Pool {
  uint64_t reserved = 0;  // as the driver says, 0 where it never did
  uint64_t live = 0;      // bytes of the allocations in it
  [[nodiscard]] uint64_t held() const { return reserved > live ? reserved : live; }
};

// What the ledger tells its owner.
class PhysicalObserver {
 public:
  virtual ~PhysicalObserver() = default;
  virtual void direct_begun(Block& block) = 0;
  virtual void direct_ended(const Block& block, BlockListener::End end) = 0;
  // Claimed memory is gone: no block can live in it.
  virtual void memory_gone(uint64_t address, uint64_t size) = 0;
};

class PhysicalLedger {
 public:
  PhysicalLedger(Totals& totals, Anomalies& anomalies, PhysicalObserver& observer)
      : totals_(totals), anomalies_(anomalies), observer_(observer) {}

  // Events of the physical ledger and segment events. `made` carries what is known of the maker.
  void apply(const Event& event, const Block& made);

  // Finds what a block lies in and makes a segment of it. False where nothing is known there.
  bool claim(const Block& block);

  Block* find_direct(uint64_t address);
  void for_each_direct(int16_t device, const std::function<void(const Block&)>& visit) const;
  void for_each_host(const std::function<void(const Block&)>& visit) const;
  void append_segments(int16_t device, std::vector<Segment>& segments) const;

 private:
  using PoolKey = std::pair<int16_t, uint64_t>;

  void allocate(const Event& event, const Block& made);
  void release(uint64_t address, BlockListener::End end);
  void free_begin(const Event& event);
  void free_end(const Event& event);
  void make_room(uint64_t address, uint64_t size);
  void count(const PhysicalAllocation& allocation, bool more);
  void claim_allocation(PhysicalAllocation& allocation);

  void create_handle(const Event& event, const Block& made);
  void release_handle(const Event& event);
  void end_handle_if_unused(uint64_t number);
  void map(const Event& event);
  void unmap(uint64_t address, uint64_t size);
  void claim_run(Run& run);
  void claim_handle(uint64_t number);
  uint64_t* host_line(Memory memory);
  void add_to_runs(Run piece);
  void cut_from_runs(uint64_t address, uint64_t size);
  void shrink(const Run& run, uint64_t address, uint64_t size);

  PoolKey pool_of(const Event& event) const;
  void set_pool(PoolKey key, const std::function<void(Pool&)>& change);
  void destroy_pool(const Event& event);
  template <class Doomed>
  void release_all(Doomed&& doomed);
  void end_context(const Event& event);
  void module_event(const Event& event);

  Totals& totals_;
  Anomalies& anomalies_;
  PhysicalObserver& observer_;

  AddressMap<PhysicalAllocation> allocations_;
  std::set<std::pair<uint64_t, uint32_t>> taken_over_;  // address, thread: its free_end is to come
  std::set<uint64_t> uncounted_;  // captured, imported: their frees are no surprise

  // The driver reuses the values of its handles while mappings of the old one still live, so they
  // have numbers of our own.
  std::map<uint64_t, Handle> handles_;
  std::unordered_map<uint64_t, uint64_t> handle_numbers_;  // driver's handle -> number
  uint64_t next_handle_ = 1;
  AddressMap<Mapping> mappings_;
  AddressMap<Run> runs_;
  AddressMap<Reservation> reservations_;

  std::map<PoolKey, Pool> pools_;
  std::map<uint64_t, int16_t> contexts_;
  std::map<uint64_t, std::pair<int16_t, uint64_t>> modules_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_PHYSICAL_LEDGER_H
