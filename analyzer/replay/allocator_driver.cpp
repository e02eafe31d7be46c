#include "replay/allocator_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vramtrack {
namespace {

bool is_release(EventKind kind) {
  return kind == EventKind::segment_free || kind == EventKind::segment_unmap;
}

bool is_growth(EventKind kind) {
  return kind == EventKind::segment_alloc || kind == EventKind::segment_map;
}

SegmentChange change_of(const Event& event) {
  SegmentChange::Kind kind = SegmentChange::Kind::alloc;
  if (event.kind == EventKind::segment_free) kind = SegmentChange::Kind::free;
  if (event.kind == EventKind::segment_map) kind = SegmentChange::Kind::map;
  if (event.kind == EventKind::segment_unmap) kind = SegmentChange::Kind::unmap;
  return {kind, event.address, event.size, event.stream};
}

bool same(const SegmentChange& a, const SegmentChange& b) {
  return a.kind == b.kind && a.address == b.address && a.size == b.size && a.stream == b.stream;
}

// Our own traces see each page that is mapped, a snapshot the whole run of them.
std::vector<SegmentChange> joined(const std::vector<SegmentChange>& changes) {
  std::vector<SegmentChange> out;
  for (const SegmentChange& change : changes) {
    const bool pages =
        change.kind == SegmentChange::Kind::map || change.kind == SegmentChange::Kind::unmap;
    if (pages && !out.empty() && out.back().kind == change.kind &&
        out.back().address + out.back().size == change.address &&
        out.back().stream == change.stream) {
      out.back().size += change.size;
    } else {
      out.push_back(change);
    }
  }
  return out;
}

std::string text(const SegmentChange& change) {
  static constexpr const char* kNames[] = {"segment_alloc", "segment_free", "segment_map",
                                           "segment_unmap"};
  return fmt::format("{} of {} bytes at {:#x}", kNames[static_cast<size_t>(change.kind)],
                     change.size, change.address);
}

}  // namespace

AllocatorDriver::AllocatorDriver(const Definitions& definitions, int16_t device,
                                 AllocatorSettings settings, Mode mode,
                                 AllocatorSimulator::Limits limits)
    : definitions_(definitions),
      device_(device),
      mode_(mode),
      simulator_(std::move(settings), limits) {
  simulator_.set_observer([this](const SegmentChange& change) {
    if (mode_ == Mode::follow) {
      happened_.push_back(change);
    } else {
      track_segment(change);
    }
  });
  simulator_.set_place([this](uint64_t size, bool range) {
    return mode_ == Mode::follow ? place_as_recorded(range) : place_supposed(size, range);
  });
}

// Where the recording has the segment that the simulator is about to ask for.
uint64_t AllocatorDriver::place_as_recorded(bool range) {
  const auto wanted = range ? SegmentChange::Kind::map : SegmentChange::Kind::alloc;
  size_t skip = static_cast<size_t>(
      std::count_if(happened_.begin(), happened_.end(),
                    [&](const SegmentChange& change) { return change.kind == wanted; }));
  for (const SegmentChange& change : expected_)
    if (change.kind == wanted && skip-- == 0) return change.address;
  static constexpr uint64_t kNowhere = uint64_t{1} << 60;
  return kNowhere + event_number_ * (uint64_t{1} << 41);  // the recording asked for none here
}

bool AllocatorDriver::is_vacant(uint64_t address, uint64_t size) const {
  auto next = occupied_.lower_bound(address);
  if (next != occupied_.end() && next->first - address < size) return false;
  if (next == occupied_.begin()) return true;
  const auto& [before, bytes] = *std::prev(next);
  return address - before >= bytes;
}

uint64_t AllocatorDriver::place_supposed(uint64_t size, bool range) {
  if (!range && placement_ == Placement::like_recorded) {
    auto& places = recorded_places_[size];
    while (!places.empty()) {
      const uint64_t address = places.back();
      places.pop_back();
      if (is_vacant(address, size)) return address;
    }
  }
  static constexpr uint64_t kMiddle = uint64_t{1} << 46;
  const uint64_t step = (size + 2 * kSegmentRounding) / kSegmentRounding * kSegmentRounding;
  if (occupied_.empty()) {
    next_below_ = kMiddle;
    next_above_ = kMiddle;
  } else {
    next_below_ = std::min(next_below_, occupied_.begin()->first);
    next_above_ = std::max(next_above_, occupied_.rbegin()->first + occupied_.rbegin()->second);
  }
  const bool below = placement_ == Placement::like_recorded && !range && next_below_ > step;
  if (below) return next_below_ -= step;
  const uint64_t address = next_above_;
  next_above_ += step;
  return address;
}

void AllocatorDriver::track_segment(const SegmentChange& change) {
  if (change.kind == SegmentChange::Kind::alloc) {
    occupied_.insert_or_assign(change.address, change.size);
  } else if (change.kind == SegmentChange::Kind::free) {
    occupied_.erase(change.address);
  }
}

void AllocatorDriver::differ(std::string text) {
  if (counts_.first_difference.empty())
    counts_.first_difference = fmt::format("event {}: {}", event_number_, std::move(text));
}

void AllocatorDriver::compare_segments(std::string_view where) {
  const auto expected = joined(expected_);
  const auto happened = joined(happened_);
  if (expected.size() == happened.size() &&
      std::equal(expected.begin(), expected.end(), happened.begin(), same)) {
    counts_.segment_events_equal += expected_.size();
    expected_.clear();
    happened_.clear();
    return;
  }
  size_t i = 0;
  for (; i < expected_.size() || i < happened_.size(); ++i) {
    const bool both = i < expected_.size() && i < happened_.size();
    if (both && same(expected_[i], happened_[i])) {
      ++counts_.segment_events_equal;
      continue;
    }
    differ(fmt::format("{}: recorded {}, simulated {}", where,
                       i < expected_.size() ? text(expected_[i]) : "nothing",
                       i < happened_.size() ? text(happened_[i]) : "nothing"));
  }
  expected_.clear();
  happened_.clear();
}

bool AllocatorDriver::apply(const Event& event) {
  if (event.device != device_) return true;
  ++event_number_;
  const bool beginning = (event.flags & kEventReconstructed) != 0;
  if (!is_release(event.kind)) settle_releases(&event);
  switch (event.kind) {
    case EventKind::segment_alloc:
    case EventKind::segment_free:
    case EventKind::segment_map:
    case EventKind::segment_unmap:
      if (beginning) {
        begin_segment(event);
      } else {
        record_segment(event);
      }
      return true;
    case EventKind::block_alloc:
      if (beginning) {
        begin_block(event);
      } else {
        allocate(event);
      }
      return true;
    case EventKind::block_free:
      free_block(event, false);
      return true;
    case EventKind::block_free_completed:
      free_block(event, true);
      return true;
    case EventKind::out_of_memory:
      return out_of_memory(event);
    default:
      return true;
  }
}

void AllocatorDriver::finish() {
  settle_releases(nullptr);
  if (mode_ == Mode::follow) compare_segments("at the end");
  counts_.recorded_reserved_end = recorded_reserved_;
}

void AllocatorDriver::begin_segment(const Event& event) {
  counts_.began_empty = false;
  recorded_reserved_ += event.size;
  counts_.recorded_reserved_peak = std::max(counts_.recorded_reserved_peak, recorded_reserved_);
  if (mode_ == Mode::suppose && beginning_ == Beginning::repack) return;
  occupied_.insert_or_assign(event.address, event.size);
  simulator_.add_segment(event.address, event.size, event.stream, event.object,
                         (event.flags & kEventSmallPool) != 0,
                         (event.flags & kEventExpandable) != 0);
}

void AllocatorDriver::begin_block(const Event& event) {
  SimulatedBlock* block = nullptr;
  if (mode_ == Mode::suppose && beginning_ == Beginning::repack) {
    block = simulator_.allocate(request_of(event), event.stream, event.object);
  } else {
    block = simulator_.add_block(event.address, event.size, event.requested);
  }
  if (block == nullptr) {
    ++counts_.lost_blocks;
  } else {
    blocks_.insert_or_assign(event.address, block);
  }
}

void AllocatorDriver::record_segment(const Event& event) {
  ++counts_.segment_events;
  const bool growth = is_growth(event.kind);
  recorded_reserved_ = growth ? recorded_reserved_ + event.size
                              : recorded_reserved_ - std::min(recorded_reserved_, event.size);
  counts_.recorded_reserved_peak = std::max(counts_.recorded_reserved_peak, recorded_reserved_);
  if (mode_ == Mode::follow) {
    expected_.push_back(change_of(event));
  } else if (event.kind == EventKind::segment_alloc) {
    recorded_places_[event.size].push_back(event.address);
  }
  if (!growth) {
    releasing_ = true;
    if (event.stack != 0) release_stack_ = event.stack;
  }
}

// Whether the allocator gave its cache back on its own, to serve the request that follows.
bool AllocatorDriver::is_last_resort(const Event* next) const {
  for (const FrameId id : definitions_.stack(release_stack_)) {
    const std::string& function = definitions_.frame(id).function;
    if (function.find("empty_cache") != std::string::npos ||
        function.find("emptyCache") != std::string::npos)
      return false;
  }
  return next != nullptr && (is_growth(next->kind) || next->kind == EventKind::out_of_memory);
}

void AllocatorDriver::settle_releases(const Event* next) {
  if (!std::exchange(releasing_, false)) return;
  const bool last_resort = is_last_resort(next);
  release_stack_ = 0;
  ++(last_resort ? counts_.last_resorts : counts_.cache_releases);
  if (mode_ == Mode::suppose) {
    if (!last_resort) simulator_.release_cached();
    return;
  }
  simulator_.release_cached();
  compare_segments("when the cache was released");
}

uint64_t AllocatorDriver::request_of(const Event& event) {
  if (event.requested != 0) return event.requested;
  ++counts_.rounded_requests;
  if (unknown_ == UnknownRequest::largest) return event.size;
  return event.size - std::min<uint64_t>(event.size - 1, kMinBlockBytes - 1);
}

void AllocatorDriver::allocate(const Event& event) {
  ++counts_.requests;
  SimulatedBlock* block = simulator_.allocate(request_of(event), event.stream, event.object);
  if (mode_ == Mode::follow) compare_segments("for a request");
  if (block == nullptr) {
    ++counts_.failed_requests;
    return;
  }
  if (block->address == event.address) {
    ++counts_.addresses_equal;
  } else if (mode_ == Mode::follow) {
    differ(fmt::format("{} bytes were served at {:#x}, simulated at {:#x}", event.requested,
                       event.address, block->address));
  }
  blocks_.insert_or_assign(event.address, block);
}

void AllocatorDriver::free_block(const Event& event, bool completed) {
  const auto found = blocks_.find(event.address);
  if (found == blocks_.end()) {
    ++counts_.lost_blocks;
    return;
  }
  SimulatedBlock* block = found->second;
  if (!completed) {
    if (block->allocated) simulator_.free_requested(block);
    return;
  }
  // The last resort waits for all streams: such a block is free already.
  if (block->allocated || block->pending) simulator_.free_completed(block);
  blocks_.erase(found);
}

bool AllocatorDriver::out_of_memory(const Event& event) {
  counts_.oom_recorded = true;
  counts_.oom_size = event.size;
  counts_.oom_capacity = recorded_reserved_ + event.extra;
  if (mode_ == Mode::follow) return true;
  SimulatedBlock* block = simulator_.allocate(event.size, event.stream, event.object);
  counts_.oom_served = block != nullptr;
  if (block != nullptr) simulator_.free_completed(block);
  return !stop_at_oom_;
}

}  // namespace vramtrack
