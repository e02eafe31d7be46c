#include "replay/block_ledger.h"

namespace vramtrack {
namespace {

uint64_t asked_for(const Block& block) {
  if (block.stands_for != 0) return block.stands_for;
  return block.requested != 0 ? block.requested : block.size;
}

}  // namespace

Block& BlockLedger::allocate(const Event& event, const Block& made) {
  while (const Kept* old = blocks_.overlapping(event.address, event.size)) {
    const Kept gone = *old;
    if (!gone.pending) {
      ++anomalies_.overlapping_blocks;  // its free was lost
      if (listener != nullptr) listener->block_ended(gone, event, BlockListener::End::lost);
    }
    remove(gone);
  }
  Kept block{made};
  block.origin = Block::Origin::allocator;
  block.pool = event.object;
  block.backed = physical_.claim(block);

  DeviceTotals& device = totals_.of(block.device);
  device.has_blocks = true;
  if (block.stands_for != 0) device.sampled = true;
  device.allocated += block.bytes();
  device.requested += asked_for(block);
  ++device.block_count;
  if (!block.backed) {
    // Each such block stands for its own memory, so that the sums stay exact.
    device.in_use += block.bytes();
    device.unbacked += block.bytes();
    if (block.device >= 0) ++anomalies_.blocks_without_segment;
  }
  Kept& kept = blocks_.insert(block);
  check_witness(event, device);
  if (listener != nullptr) listener->block_begun(kept);
  return kept;
}

void BlockLedger::free(const Event& event) {
  Kept* block = blocks_.at(event.address);
  if (block == nullptr || block->pending) {
    ++anomalies_.unknown_frees;
    return;
  }
  if (listener != nullptr) listener->block_ended(*block, event, BlockListener::End::freed);
  DeviceTotals& device = totals_.of(block->device);
  if ((event.flags & kEventPendingFree) != 0) {
    block->pending = true;
    device.allocated -= block->bytes();
    device.requested -= asked_for(*block);
    device.pending += block->bytes();
    --device.block_count;
  } else {
    remove(*block);
  }
  check_witness(event, device);
}

void BlockLedger::complete_free(const Event& event) {
  const Kept* block = blocks_.at(event.address);
  if (block != nullptr && block->pending) remove(*block);
}

void BlockLedger::end_in(uint64_t address, uint64_t size, const Event& event) {
  while (const Kept* block = blocks_.overlapping(address, size)) {
    const Kept gone = *block;
    if (!gone.pending) {
      ++anomalies_.blocks_lost;
      if (listener != nullptr) listener->block_ended(gone, event, BlockListener::End::lost);
    }
    remove(gone);
  }
}

void BlockLedger::remove(const Kept& block) {
  DeviceTotals& device = totals_.of(block.device);
  if (block.pending) {
    device.pending -= block.bytes();
  } else {
    device.allocated -= block.bytes();
    device.requested -= asked_for(block);
    --device.block_count;
  }
  if (!block.backed) {
    device.in_use -= block.bytes();
    device.unbacked -= block.bytes();
  }
  blocks_.erase(block.address);
}

// PyTorch reports its own totals with each block: the witness that our replay missed nothing.
void BlockLedger::check_witness(const Event& event, const DeviceTotals& device) {
  if (event.witness_allocated == 0) return;
  ++anomalies_.witness_checks;
  if (!device.sampled && event.witness_allocated != device.allocated)
    ++anomalies_.witness_allocated_wrong;
  if (event.witness_reserved != 0 && event.witness_reserved != device.reserved) {
    ++anomalies_.witness_reserved_wrong;
  }
}

void BlockLedger::fill(int16_t device, std::vector<Segment>& segments) const {
  size_t at = 0;
  blocks_.for_each([&](const Kept& block) {
    if (block.device != device || !block.backed) return;
    while (at < segments.size() && segments[at].end() <= block.address) ++at;
    if (at == segments.size() || block.address < segments[at].address) return;
    Segment& segment = segments[at];
    (block.pending ? segment.pending : segment.allocated) += block.size;
    segment.blocks.push_back(&block);
  });
}

}  // namespace vramtrack
