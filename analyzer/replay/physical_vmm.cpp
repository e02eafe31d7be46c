// The part of the physical ledger that deals with virtual memory management: handles, mappings and
// the runs they form.
#include <algorithm>

#include "replay/physical_ledger.h"

namespace vramtrack {
namespace {

bool on_host(const Handle& handle) {
  return handle.memory == Memory::vmm_host;
}
bool counted(const Handle& handle) {
  return handle.memory != Memory::multicast && handle.memory != Memory::imported;
}

}  // namespace

void PhysicalLedger::create_handle(const Event& event, const Block& made) {
  const auto known = handle_numbers_.find(event.object);
  if (known != handle_numbers_.end()) {
    const auto handle = handles_.find(known->second);
    if (handle != handles_.end() && handle->second.references != 0) {
      ++handle->second.references;  // retained once more
      return;
    }
  }
  const uint64_t number = next_handle_++;
  Handle handle{made};
  handle.origin = Block::Origin::vmm;
  handle.object = event.object;
  handle.references = 1;
  if (handle.device < 0 && !on_host(handle)) handle.device = 0;
  handle_numbers_[event.object] = number;
  Handle& kept = handles_.emplace(number, handle).first->second;
  if (!counted(kept)) return;
  if (on_host(kept)) {
    totals_.host.vmm_host += kept.size;
    return;
  }
  DeviceTotals& device = totals_.of(kept.device);
  device.in_use += kept.size;
  device.direct += kept.size;
  observer_.direct_begun(kept);
}

void PhysicalLedger::release_handle(const Event& event) {
  const auto number = handle_numbers_.find(event.object);
  const auto handle =
      number == handle_numbers_.end() ? handles_.end() : handles_.find(number->second);
  if (handle == handles_.end() || handle->second.references == 0) {
    if (!uncounted_.contains(event.object)) ++anomalies_.unknown_frees;
    return;
  }
  --handle->second.references;
  end_handle_if_unused(handle->first);
}

void PhysicalLedger::end_handle_if_unused(uint64_t number) {
  const auto found = handles_.find(number);
  if (found == handles_.end()) return;
  const Handle& handle = found->second;
  if (handle.references != 0 || handle.mappings != 0) return;
  if (on_host(handle)) {
    totals_.host.vmm_host -= handle.size;
  } else if (counted(handle)) {
    DeviceTotals& device = totals_.of(handle.device);
    device.in_use -= handle.size;
    if (!handle.claimed) {
      device.direct -= handle.size;
      observer_.direct_ended(handle, BlockListener::End::freed);
    }
  }
  const auto name = handle_numbers_.find(handle.object);
  if (name != handle_numbers_.end() && name->second == number) handle_numbers_.erase(name);
  handles_.erase(found);
}

void PhysicalLedger::map(const Event& event) {
  if (event.size == 0) return;
  Run piece{.address = event.address,
            .size = event.size,
            .stream = event.stream,
            .pool = event.kind == EventKind::segment_map ? event.object : 0,
            .sequence = event.sequence,
            .stack = event.stack,
            .flags = event.flags,
            .device = event.device,
            .owns_bytes = event.kind == EventKind::segment_map};
  if (runs_.overlapping(event.address, event.size) != nullptr) {
    ++anomalies_.overlapping_physical;
    unmap(event.address, event.size);
  }
  if (!piece.owns_bytes) {
    Mapping mapping{.address = event.address, .size = event.size};
    const auto number = handle_numbers_.find(event.object);
    const auto handle =
        number == handle_numbers_.end() ? handles_.end() : handles_.find(number->second);
    if (handle != handles_.end()) {
      mapping.handle = handle->first;
      ++handle->second.mappings;
      if (handle->second.address == 0) handle->second.address = event.address;
      if (piece.device < 0) piece.device = handle->second.device;
    }
    mappings_.insert(mapping);
  }
  if (piece.device < 0) piece.device = 0;
  add_to_runs(piece);
}

// Mappings are unmapped whole; the pages of a snapshot's segments in any pieces.
void PhysicalLedger::unmap(uint64_t address, uint64_t size) {
  std::vector<Mapping> gone;
  mappings_.for_each_in(address, address + size,
                        [&](const Mapping& mapping) { gone.push_back(mapping); });
  if (runs_.overlapping(address, size) == nullptr) ++anomalies_.unknown_frees;
  cut_from_runs(address, size);
  for (const Mapping& mapping : gone) {
    mappings_.erase(mapping.address);
    const auto handle = handles_.find(mapping.handle);
    if (handle == handles_.end()) continue;
    --handle->second.mappings;
    end_handle_if_unused(mapping.handle);
  }
}

// The run's bytes become a segment's, and so do the handles behind them.
void PhysicalLedger::claim_run(Run& run) {
  run.claimed = true;
  totals_.of(run.device).reserved += run.size;
  if (Reservation* home = reservations_.holding(run.address)) home->claimed = true;
  std::vector<uint64_t> numbers;
  mappings_.for_each_in(run.address, run.address + run.size,
                        [&](const Mapping& mapping) { numbers.push_back(mapping.handle); });
  for (const uint64_t number : numbers) claim_handle(number);
}

// Joins a new piece with its neighbours in the same reservation. A piece that joins a segment, or
// whose reservation serves one, is part of it at once.
void PhysicalLedger::add_to_runs(Run piece) {
  const Reservation* home = reservations_.holding(piece.address);
  const auto joins = [&](const Run* other) {
    return other != nullptr && other->device == piece.device &&
           other->owns_bytes == piece.owns_bytes &&
           (!piece.owns_bytes || (other->stream == piece.stream && other->pool == piece.pool)) &&
           reservations_.holding(other->address) == home;
  };
  Run* before = piece.address == 0 ? nullptr : runs_.holding(piece.address - 1);
  Run* after = runs_.at(piece.address + piece.size);
  if (!joins(before)) before = nullptr;
  if (!joins(after)) after = nullptr;

  const bool claims = piece.owns_bytes || (home != nullptr && home->claimed) ||
                      (before != nullptr && before->claimed) ||
                      (after != nullptr && after->claimed);
  if (claims) {
    claim_run(piece);
    for (Run* neighbour : {before, after}) {
      if (neighbour != nullptr && !neighbour->claimed) claim_run(*neighbour);
    }
  }
  if (piece.owns_bytes) totals_.of(piece.device).in_use += piece.size;

  if (after != nullptr) {
    piece.size += after->size;
    runs_.erase(after->address);
  }
  if (before != nullptr) {
    before->size += piece.size;
  } else {
    runs_.insert(piece);
  }
}

// The bytes [address, address + size) of a run are unmapped.
void PhysicalLedger::shrink(const Run& run, uint64_t address, uint64_t size) {
  if (!run.claimed) return;
  DeviceTotals& device = totals_.of(run.device);
  device.reserved -= size;
  if (run.owns_bytes) device.in_use -= size;
  observer_.memory_gone(address, size);
}

void PhysicalLedger::cut_from_runs(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  while (const Run* hit = runs_.overlapping(address, size)) {
    const Run run = *hit;
    const uint64_t run_end = run.address + run.size;
    const uint64_t from = std::max(address, run.address);
    const uint64_t to = std::min(end, run_end);
    shrink(run, from, to - from);
    runs_.erase(run.address);
    if (run.address < from) {
      Run left = run;
      left.size = from - run.address;
      runs_.insert(left);
    }
    if (to < run_end) {
      Run right = run;
      right.address = to;
      right.size = run_end - to;
      runs_.insert(right);
    }
  }
}

void PhysicalLedger::claim_handle(uint64_t number) {
  const auto found = handles_.find(number);
  if (found == handles_.end() || found->second.claimed) return;
  Handle& handle = found->second;
  handle.claimed = true;
  if (on_host(handle) || !counted(handle)) return;
  totals_.of(handle.device).direct -= handle.size;
  observer_.direct_ended(handle, BlockListener::End::became_segment);
}

}  // namespace vramtrack
