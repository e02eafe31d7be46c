// Expandable segments: one range of address space for each pool and stream, of which only the pages
// that are needed are mapped. The range is a chain of blocks like any segment; those that are not
// mapped are kept apart and cannot merge with mapped ones.
#include <algorithm>

#include "replay/allocator_simulator.h"

namespace vramtrack {
namespace {

// PyTorch reserves 9/8 of the device's memory. Only exhausting a range would show the difference.
constexpr uint64_t kRangeBytes = uint64_t{1} << 40;

uint64_t page_bytes(const SimulatedPool& pool, const AllocatorSettings& settings) {
  return pool.small ? kSmallSegmentBytes : settings.large_segment_size;
}

}  // namespace

SimulatedBlock* AllocatorSimulator::new_range(const Request& request) {
  const uint64_t page = page_bytes(*request.pool, settings_);
  const uint64_t size = kRangeBytes / page * page;
  ExpandableRange& range = ranges_.emplace_back();
  range = {place(size, true), size, page};
  SimulatedBlock* block = make_block(range.address, size, request.stream, request.pool);
  block->range = &range;
  block->birth = next_birth();
  block->mapped = false;
  request.pool->unmapped.insert(block);
  return block;
}

// The lowest place where free and unmapped neighbours together hold the request.
SimulatedBlock* AllocatorSimulator::find_growth(const Request& request) {
  const auto holds = [&](const SimulatedBlock* block) {
    uint64_t bytes = 0;
    for (; bytes < request.rounded && block != nullptr && block->is_free(); block = block->next)
      bytes += block->size;
    return bytes >= request.rounded;
  };
  SimulatedBlock key;
  key.stream = request.stream;
  auto& unmapped = request.pool->unmapped;
  for (auto it = unmapped.lower_bound(&key); it != unmapped.end(); ++it) {
    SimulatedBlock* block = *it;
    if (block->stream != request.stream) break;
    if (block->prev != nullptr && block->prev->is_free()) block = block->prev;
    if (holds(block)) return block;
  }
  return new_range(request);
}

SimulatedBlock* AllocatorSimulator::grow(const Request& request) {
  SimulatedBlock* block = find_growth(request);
  if (!block->mapped && !map(block, std::min(block->size, request.rounded))) return nullptr;
  while (block->size < request.rounded) {
    SimulatedBlock* next = block->next;
    if (!map(next, std::min(request.rounded - block->size, next->size))) return nullptr;
    block = next;  // it has swallowed the one before
  }
  request.pool->free.erase(block);
  return block;
}

bool AllocatorSimulator::map(SimulatedBlock* block, uint64_t size) {
  const ExpandableRange& range = *block->range;
  const uint64_t first = (block->address - range.address) / range.page * range.page;
  const uint64_t last = block->address - range.address + size;
  const uint64_t bytes = (last + range.page - 1) / range.page * range.page - first;
  if (!fits(bytes)) return false;
  SimulatedPool* pool = block->pool;
  pool->unmapped.erase(block);
  if (bytes < block->size) {
    SimulatedBlock* rest =
        make_block(block->address + bytes, block->size - bytes, block->stream, pool);
    rest->range = block->range;
    rest->birth = block->birth;
    rest->mapped = false;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    block->next = rest;
    block->size = bytes;
    pool->unmapped.insert(rest);
  }
  block->mapped = true;
  const uint64_t address = block->address;
  merge(block, block->prev);
  merge(block, block->next);
  put_free(block);
  changed(SegmentChange::Kind::map, address, bytes, block->stream);
  return true;
}

// Gives whole pages back; what lies before and after them stays free.
void AllocatorSimulator::unmap(SimulatedBlock* block) {
  const ExpandableRange& range = *block->range;
  const uint64_t offset = block->address - range.address;
  const uint64_t first = (offset + range.page - 1) / range.page * range.page;
  const uint64_t last = (offset + block->size) / range.page * range.page;
  if (first >= last) return;
  SimulatedPool* pool = block->pool;
  pool->free.erase(block);
  const uint64_t end = block->address + block->size;
  if (first > offset) {
    SimulatedBlock* before = make_block(block->address, first - offset, block->stream, pool);
    before->range = block->range;
    before->birth = block->birth;
    before->prev = block->prev;
    before->next = block;
    if (before->prev != nullptr) before->prev->next = before;
    block->prev = before;
    put_free(before);
  }
  block->address = range.address + first;
  block->size = last - first;
  if (block->address + block->size < end) {
    SimulatedBlock* after = make_block(block->address + block->size,
                                       end - block->address - block->size, block->stream, pool);
    after->range = block->range;
    after->birth = block->birth;
    after->prev = block;
    after->next = block->next;
    if (after->next != nullptr) after->next->prev = after;
    block->next = after;
    put_free(after);
  }
  block->mapped = false;
  changed(SegmentChange::Kind::unmap, block->address, block->size, block->stream);
  merge(block, block->prev);
  merge(block, block->next);
  if (block->is_split()) {
    pool->unmapped.insert(block);
  } else {
    discard(block);  // nothing of the range is mapped: its address space goes back too
  }
}

// A run that was mapped before the first request. Where its range begins is not known; runs of one
// pool and stream are put into one range that begins at the first of them.
void AllocatorSimulator::add_mapped_run(uint64_t address, uint64_t size, uint64_t stream,
                                        SimulatedPool& pool) {
  SimulatedBlock* home = nullptr;
  for (SimulatedBlock* block : pool.unmapped)
    if (block->stream == stream && address >= block->address &&
        address + size <= block->address + block->size)
      home = block;
  if (home == nullptr) {
    ExpandableRange& range = ranges_.emplace_back();
    const uint64_t page = page_bytes(pool, settings_);
    range = {address, kRangeBytes / page * page, page};
    home = make_block(address, range.size, stream, &pool);
    home->range = &range;
    home->birth = next_birth();
    home->mapped = false;
    pool.unmapped.insert(home);
  }
  pool.unmapped.erase(home);
  const auto cut_front = [&](uint64_t bytes, bool mapped) {
    SimulatedBlock* front = make_block(home->address, bytes, stream, &pool);
    front->range = home->range;
    front->birth = home->birth;
    front->mapped = mapped;
    front->prev = home->prev;
    front->next = home;
    if (front->prev != nullptr) front->prev->next = front;
    home->prev = front;
    home->address += bytes;
    home->size -= bytes;
    return front;
  };
  if (address > home->address) pool.unmapped.insert(cut_front(address - home->address, false));
  SimulatedBlock* run = cut_front(size, true);
  pool.unmapped.insert(home);
  put_free(run);
}

}  // namespace vramtrack
