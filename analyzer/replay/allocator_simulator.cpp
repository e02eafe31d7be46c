#include "replay/allocator_simulator.h"

#include <algorithm>
#include <utility>

namespace vramtrack {

AllocatorSimulator::AllocatorSimulator(AllocatorSettings settings)
    : AllocatorSimulator(std::move(settings), Limits()) {
}

AllocatorSimulator::AllocatorSimulator(AllocatorSettings settings, Limits limits)
    : settings_(std::move(settings)), limits_(limits) {
}

SimulatedPool& AllocatorSimulator::pool_of(uint64_t id, bool small) {
  auto& pool = pools_[{id, small}];
  if (!pool) {
    pool = std::make_unique<SimulatedPool>();
    pool->id = id;
    pool->small = small;
  }
  return *pool;
}

SimulatedBlock* AllocatorSimulator::make_block(uint64_t address, uint64_t size, uint64_t stream,
                                               SimulatedPool* pool) {
  SimulatedBlock* block = nullptr;
  if (spare_.empty()) {
    block = &blocks_.emplace_back();
  } else {
    block = spare_.back();
    spare_.pop_back();
    *block = SimulatedBlock{};
  }
  block->address = address;
  block->size = size;
  block->stream = stream;
  block->pool = pool;
  return block;
}

void AllocatorSimulator::discard(SimulatedBlock* block) {
  spare_.push_back(block);
}

void AllocatorSimulator::put_free(SimulatedBlock* block) {
  block->age_mark = served_;
  block->pool->free.insert(block);
}

uint64_t AllocatorSimulator::place(uint64_t size, bool expandable_range) {
  if (place_) return place_(size, expandable_range);
  const uint64_t address = next_address_;
  next_address_ += (size + kSegmentRounding) / kSegmentRounding * kSegmentRounding;
  return address;
}

bool AllocatorSimulator::fits(uint64_t bytes) const {
  if (reserved_ + bytes > limits_.device_bytes) return false;
  return limits_.fraction_bytes == 0 || reserved_ + bytes <= limits_.fraction_bytes;
}

void AllocatorSimulator::changed(SegmentChange::Kind kind, uint64_t address, uint64_t size,
                                 uint64_t stream) {
  const bool grew = kind == SegmentChange::Kind::alloc || kind == SegmentChange::Kind::map;
  reserved_ = grew ? reserved_ + size : reserved_ - size;
  reserved_peak_ = std::max(reserved_peak_, reserved_);
  ++driver_calls_;
  if (observer_) observer_({kind, address, size, stream});
}

void AllocatorSimulator::add_segment(uint64_t address, uint64_t size, uint64_t stream,
                                     uint64_t pool_id, bool small, bool expandable) {
  SimulatedPool& pool = pool_of(pool_id, small);
  if (expandable) {
    add_mapped_run(address, size, stream, pool);
  } else {
    SimulatedBlock* block = make_block(address, size, stream, &pool);
    block->birth = next_birth();
    put_free(block);
  }
  reserved_ += size;
  reserved_peak_ = std::max(reserved_peak_, reserved_);
  next_address_ = std::max(next_address_, address + size + kSegmentRounding);
  // The free block that begins here; blocks are carved from it as they are added.
  for (SimulatedBlock* block : pool.free)
    if (address >= block->address && address - block->address < block->size)
      starts_[block->address] = block;
}

SimulatedBlock* AllocatorSimulator::add_block(uint64_t address, uint64_t size, uint64_t requested) {
  auto found = starts_.upper_bound(address);
  if (found == starts_.begin()) return nullptr;
  SimulatedBlock* rest = std::prev(found)->second;
  if (!rest->is_free() || address < rest->address || address + size > rest->address + rest->size)
    return nullptr;
  SimulatedPool* pool = rest->pool;
  pool->free.erase(rest);
  const auto cut = [&](uint64_t bytes) {  // the front of `rest` becomes a block of its own
    SimulatedBlock* front = make_block(rest->address, bytes, rest->stream, pool);
    front->range = rest->range;
    front->birth = rest->birth;
    front->prev = rest->prev;
    front->next = rest;
    if (front->prev != nullptr) front->prev->next = front;
    rest->prev = front;
    starts_[front->address] = front;
    rest->address += bytes;
    rest->size -= bytes;
    starts_[rest->address] = rest;
    return front;
  };
  if (address > rest->address) put_free(cut(address - rest->address));
  SimulatedBlock* block = rest;
  if (rest->size > size) {
    block = cut(size);
    put_free(rest);
  }
  block->allocated = true;
  block->requested = requested;
  allocated_ += block->size;
  return block;
}

SimulatedBlock* AllocatorSimulator::find_free(const Request& request) {
  SimulatedPool& pool = *request.pool;
  SimulatedBlock key;
  key.stream = request.stream;
  key.size = request.rounded;
  auto it = pool.free.lower_bound(&key);
  const auto usable = [&](auto at) {
    return at != pool.free.end() && (*at)->stream == request.stream;
  };
  if (!usable(it)) return nullptr;
  if ((*it)->range != nullptr && settings_.expandable_segments) {
    // What counts as the size of a block at the growing end is what it can grow to.
    const auto reach = [](const SimulatedBlock* block) {
      const SimulatedBlock* next = block->next;
      return block->size + (next != nullptr && !next->mapped ? next->size : 0);
    };
    for (auto next = std::next(it);
         (*it)->range != nullptr && usable(next) && reach(*next) < reach(*it);)
      it = next++;
  } else if ((*it)->range != nullptr) {
    // Expandable segments were switched off meanwhile: blocks in them are not handed out.
    while (usable(it) && (*it)->range != nullptr) ++it;
    if (!usable(it)) return nullptr;
  }
  SimulatedBlock* block = *it;
  const uint64_t most = settings_.max_split_size;
  if (request.rounded < most && block->size >= most) return nullptr;
  if (request.rounded >= most && block->size >= request.rounded + settings_.max_non_split_rounding)
    return nullptr;
  pool.free.erase(it);
  return block;
}

SimulatedBlock* AllocatorSimulator::new_segment(const Request& request) {
  if (settings_.expandable_segments) return grow(request);
  const uint64_t size = settings_.allocation_size(request.rounded);
  if (!fits(size)) return nullptr;
  SimulatedBlock* block = make_block(place(size, false), size, request.stream, request.pool);
  block->birth = next_birth();
  changed(SegmentChange::Kind::alloc, block->address, size, request.stream);
  return block;
}

SimulatedBlock* AllocatorSimulator::serve(SimulatedBlock* block, const Request& request) {
  if (block->size > request.rounded &&
      settings_.should_split(block->size, request.rounded, request.pool->small,
                             settings_.expandable_segments || block->range != nullptr)) {
    SimulatedBlock* rest = block;
    block = make_block(rest->address, request.rounded, rest->stream, rest->pool);
    block->range = rest->range;
    block->birth = rest->birth;
    block->prev = rest->prev;
    block->next = rest;
    if (block->prev != nullptr) block->prev->next = block;
    rest->prev = block;
    rest->address += request.rounded;
    rest->size -= request.rounded;
    put_free(rest);
  }
  block->allocated = true;
  block->requested = request.requested;
  allocated_ += block->size;
  return block;
}

SimulatedBlock* AllocatorSimulator::allocate(uint64_t requested, uint64_t stream, uint64_t pool) {
  const uint64_t rounded = settings_.round_size(requested);
  const Request request{rounded, requested, stream,
                        &pool_of(pool, AllocatorSettings::small_pool(rounded))};
  ++served_;
  SimulatedBlock* block = find_free(request);
  if (block == nullptr) {
    if (settings_.garbage_collection_threshold > 0 && limits_.fraction_bytes != 0)
      collect_garbage();
    block = new_segment(request);
  }
  if (block == nullptr && release_enough(request)) block = new_segment(request);
  if (block == nullptr) {
    ++retries_;
    release_cached();
    block = new_segment(request);
  }
  return block == nullptr ? nullptr : serve(block, request);
}

void AllocatorSimulator::free_requested(SimulatedBlock* block) {
  block->allocated = false;
  block->pending = true;
  allocated_ -= block->size;
}

void AllocatorSimulator::free_completed(SimulatedBlock* block) {
  if (block->allocated) free_requested(block);
  free_block(block);
}

void AllocatorSimulator::free_block(SimulatedBlock* block) {
  block->pending = false;
  block->requested = 0;
  merge(block, block->prev);
  merge(block, block->next);
  put_free(block);
}

void AllocatorSimulator::merge(SimulatedBlock* into, SimulatedBlock* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != into->mapped) return;
  const SimulatedBlock gone = *neighbour;
  const bool before = into->prev == neighbour;
  if (gone.mapped) {
    into->pool->free.erase(neighbour);
  } else {
    into->pool->unmapped.erase(neighbour);
  }
  if (before) {
    into->address = gone.address;
    into->prev = gone.prev;
    if (into->prev != nullptr) into->prev->next = into;
  } else {
    into->next = gone.next;
    if (into->next != nullptr) into->next->prev = into;
  }
  into->size += gone.size;
  discard(neighbour);
}

void AllocatorSimulator::release_segment(SimulatedBlock* block) {
  block->pool->free.erase(block);
  changed(SegmentChange::Kind::free, block->address, block->size, block->stream);
  discard(block);
}

void AllocatorSimulator::release_pool(SimulatedPool& pool) {
  std::vector<SimulatedBlock*> whole;
  std::vector<SimulatedBlock*> ranges;
  for (SimulatedBlock* block : pool.free) {
    if (block->range != nullptr) {
      ranges.push_back(block);
    } else if (!block->is_split()) {
      whole.push_back(block);
    }
  }
  for (SimulatedBlock* block : whole) release_segment(block);
  for (SimulatedBlock* block : ranges) unmap(block);
}

void AllocatorSimulator::release_cached() {
  // Blocks of private pools stay: their graphs may be replayed. The streams are waited for, so
  // that pending blocks become free first.
  for (SimulatedBlock& block : blocks_)
    if (block.pending) free_block(&block);
  release_pool(pool_of(0, false));
  release_pool(pool_of(0, true));
}

// With max_split_size, large cached blocks that are too small for the request go first.
bool AllocatorSimulator::release_enough(const Request& request) {
  if (settings_.max_split_size == AllocatorSettings::kUnlimited) return false;
  SimulatedPool& pool = *request.pool;
  SimulatedBlock key;
  key.stream = request.stream;
  key.size = std::max(request.rounded, settings_.max_split_size);
  auto it = pool.free.lower_bound(&key);
  const auto releasable = [&](const SimulatedBlock* block) {
    return block->stream == request.stream && !block->is_split() && block->range == nullptr;
  };
  if (it != pool.free.end() && releasable(*it)) {
    release_segment(*it);
    return true;
  }
  uint64_t released = 0;
  while (it != pool.free.begin() && released < key.size) {
    --it;
    SimulatedBlock* block = *it;
    if (block->stream != request.stream || block->size < settings_.max_split_size) break;
    if (!releasable(block)) continue;
    released += block->size;
    it = pool.free.erase(it);
    changed(SegmentChange::Kind::free, block->address, block->size, block->stream);
    discard(block);
  }
  return released >= key.size;
}

void AllocatorSimulator::collect_garbage() {
  const auto limit = static_cast<uint64_t>(settings_.garbage_collection_threshold *
                                           static_cast<double>(limits_.fraction_bytes));
  if (reserved_ <= limit) return;
  const uint64_t target = reserved_ - limit;
  SimulatedPool& pool = pool_of(0, false);
  const auto age = [&](const SimulatedBlock* block) { return served_ - block->age_mark; };
  uint64_t released = 0;
  bool again = true;
  while (released < target && again) {
    again = false;
    uint64_t total_age = 0;
    std::vector<SimulatedBlock*> candidates;
    for (SimulatedBlock* block : pool.free)
      if (!block->is_split() && block->range == nullptr) {
        candidates.push_back(block);
        total_age += age(block);
      }
    if (candidates.empty()) return;
    const double threshold =
        static_cast<double>(total_age) / static_cast<double>(candidates.size());
    for (SimulatedBlock* block : candidates) {
      if (released >= target) break;
      if (static_cast<double>(age(block)) < threshold) continue;
      released += block->size;
      again = true;
      release_segment(block);
    }
  }
}

}  // namespace vramtrack
