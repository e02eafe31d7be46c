// The block ledger: what a caching allocator cut out of its segments. The hot part of the replay.
#ifndef VRAMTRACK_ANALYZER_REPLAY_BLOCK_LEDGER_H
#define VRAMTRACK_ANALYZER_REPLAY_BLOCK_LEDGER_H

#include "replay/address_map.h"
#include "replay/physical_ledger.h"
#include "replay/totals.h"

namespace vramtrack {

class BlockLedger {
 public:
  BlockLedger(Totals& totals, Anomalies& anomalies, PhysicalLedger& physical)
      : totals_(totals), anomalies_(anomalies), physical_(physical) {}

  BlockListener* listener = nullptr;

  // `made` carries what is known of the maker. Returns the block, until the next event.
  Block& allocate(const Event& event, const Block& made);
  void free(const Event& event);
  void complete_free(const Event& event);
  // The memory under these addresses is gone.
  void end_in(uint64_t address, uint64_t size, const Event& event);

  Block* at(uint64_t address) { return blocks_.at(address); }
  Block* holding(uint64_t address) { return blocks_.holding(address); }
  template <class Visit>
  void for_each(Visit&& visit) const {
    blocks_.for_each(visit);
  }
  template <class Visit>
  void for_each_in(uint64_t begin, uint64_t end, Visit&& visit) {
    blocks_.for_each_in(begin, end, visit);
  }
  // Puts the blocks into the segments they lie in; both by address.
  void fill(int16_t device, std::vector<Segment>& segments) const;

 private:
  struct Kept : Block {
    bool backed = false;  // lies in physical memory that we know
  };

  void check_witness(const Event& event, const DeviceTotals& device);
  void remove(const Kept& block);

  Totals& totals_;
  Anomalies& anomalies_;
  PhysicalLedger& physical_;
  AddressMap<Kept> blocks_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_BLOCK_LEDGER_H
