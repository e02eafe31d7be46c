#include "replay/allocator_events.h"

#include <utility>

#include "import/allocator_settings.h"

namespace vramtrack {
namespace {

template <typename Map>
typename Map::iterator holding(Map& homes, uint64_t address) {
  auto it = homes.upper_bound(address);
  if (it == homes.begin()) return homes.end();
  --it;
  return address - it->first < it->second.size ? it : homes.end();
}

bool is_segment(EventKind kind) {
  return kind == EventKind::segment_alloc || kind == EventKind::segment_free ||
         kind == EventKind::segment_map || kind == EventKind::segment_unmap;
}

bool is_block(EventKind kind) {
  return kind == EventKind::block_alloc || kind == EventKind::block_free ||
         kind == EventKind::block_free_completed;
}

}  // namespace

AllocatorEvents::AllocatorEvents(const Recording& recording) : recording_(recording) {
  Homes allocations;
  Homes ranges;
  recording.for_each([&](const Event& event) {
    if (is_block(event.kind) && (event.flags & kEventReconstructed) == 0)
      ++block_events_[event.device];
    if (is_segment(event.kind)) has_segment_events_ = true;
    learn(event, allocations, ranges);
    return true;
  });
  for (const auto& entry : allocations) keep(entry);
  for (const auto& entry : ranges) keep(entry);
}

void AllocatorEvents::keep(const Homes::value_type& entry) {
  if (entry.second.used) segments_.emplace(entry.second.sequence, entry.second);
}

void AllocatorEvents::use(Homes& homes, const Event& block) {
  const auto home = holding(homes, block.address);
  if (home == homes.end() || home->second.used) return;
  home->second.used = true;
  home->second.stream = block.stream;
  home->second.pool = block.object;
  home->second.small = block.size <= kSmallPoolMax;
  home->second.device = block.device;
}

void AllocatorEvents::learn(const Event& event, Homes& allocations, Homes& ranges) {
  Home home;
  home.size = event.size;
  home.device = event.device;
  home.sequence = event.sequence;
  const auto end = [this](Homes& homes, uint64_t address) {
    const auto it = homes.find(address);
    if (it == homes.end()) return;
    keep(*it);
    homes.erase(it);
  };
  switch (event.kind) {
    case EventKind::physical_alloc:
      if (event.memory != Memory::device) return;
      end(allocations, event.address);
      allocations.emplace(event.address, home);
      return;
    case EventKind::physical_free_begin:
      end(allocations, event.address);
      return;
    case EventKind::address_reserve:
      end(ranges, event.address);
      ranges.emplace(event.address, home);
      return;
    case EventKind::address_free:
      end(ranges, event.address);
      return;
    case EventKind::block_alloc:
      use(allocations, event);
      use(ranges, event);
      return;
    default:
      return;
  }
}

// One event of a trace of our own as one of the allocator's; false where it is none of those.
bool AllocatorEvents::translate(const Event& event, Event& out, Homes& open,
                                std::map<uint64_t, Event>& freeing) const {
  out = event;
  const auto as_segment = [&](EventKind kind, const Home& home, bool expandable) {
    out.kind = kind;
    out.device = home.device;
    out.stream = home.stream;
    out.object = home.pool;
    out.flags = (home.small ? kEventSmallPool : 0U) | (expandable ? kEventExpandable : 0U) |
                (home.pool != 0 ? kEventPrivatePool : 0U);
    return true;
  };
  switch (event.kind) {
    case EventKind::physical_alloc:
    case EventKind::address_reserve: {
      const auto known = segments_.find(event.sequence);
      if (known == segments_.end()) return false;
      open.insert_or_assign(event.address, known->second);
      return event.kind == EventKind::physical_alloc &&
             as_segment(EventKind::segment_alloc, known->second, false);
    }
    case EventKind::physical_free_begin: {
      const auto home = open.find(event.address);
      if (home == open.end()) return false;
      as_segment(EventKind::segment_free, home->second, false);
      out.size = home->second.size;
      freeing.insert_or_assign(event.address, out);
      return false;
    }
    case EventKind::physical_free_end: {
      const auto begun = freeing.find(event.address);
      if (begun == freeing.end()) return false;
      out = begun->second;
      freeing.erase(begun);
      if (event.result != 0) return false;
      open.erase(event.address);
      return true;
    }
    case EventKind::map:
    case EventKind::unmap: {
      const auto home = holding(open, event.address);
      if (home == open.end()) return false;
      return as_segment(
          event.kind == EventKind::map ? EventKind::segment_map : EventKind::segment_unmap,
          home->second, true);
    }
    default:
      return is_block(event.kind) || event.kind == EventKind::out_of_memory;
  }
}

void AllocatorEvents::for_each(int16_t device,
                               const std::function<bool(const Event&)>& visit) const {
  Homes open;
  std::map<uint64_t, Event> freeing;
  Event out;
  recording_.for_each([&](const Event& event) {
    if (has_segment_events_) return event.device != device || visit(event);
    if (!translate(event, out, open, freeing) || out.device != device) return true;
    if (!visit(out)) return false;
    // Only frees that have to wait for a stream have a completion of their own.
    if (out.kind != EventKind::block_free || (out.flags & kEventPendingFree) != 0) return true;
    out.kind = EventKind::block_free_completed;
    return visit(out);
  });
}

}  // namespace vramtrack
