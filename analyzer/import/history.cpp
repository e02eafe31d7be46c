#include "import/history.h"

#include <algorithm>
#include <iterator>

namespace vramtrack {
namespace {

using Segments = std::map<uint64_t, HistorySegment>;
using Blocks = std::map<uint64_t, HistoryBlock>;

// The element whose range holds `address`, or end().
template <typename Map>
typename Map::iterator holding(Map& ranges, uint64_t address) {
  auto it = ranges.upper_bound(address);
  if (it == ranges.begin()) return ranges.end();
  --it;
  return address - it->first < it->second.size ? it : ranges.end();
}

// Adds a mapped range to an expandable segment: neighbours of the same kind become one.
void map_range(Segments& segments, const HistorySegment& range) {
  HistorySegment merged = range;
  auto next = segments.lower_bound(range.address);
  if (next != segments.begin()) {
    const auto before = std::prev(next);
    if (before->second.expandable && before->first + before->second.size == range.address &&
        before->second.small_pool == range.small_pool && before->second.stream == range.stream) {
      merged.address = before->first;
      merged.size += before->second.size;
      merged.pool = before->second.pool;
      next = segments.erase(before);
    }
  }
  if (next != segments.end() && next->second.expandable &&
      range.address + range.size == next->first && next->second.small_pool == range.small_pool &&
      next->second.stream == range.stream) {
    merged.size += next->second.size;
    merged.pool = next->second.pool;
    segments.erase(next);
  }
  segments.insert_or_assign(merged.address, merged);
}

// Takes a range out of whatever is mapped there. False where not all of it was.
bool unmap_range(Segments& segments, uint64_t address, uint64_t size) {
  uint64_t removed = 0;
  const uint64_t end = address + size;
  while (removed < size) {
    auto it = holding(segments, address + removed);
    if (it == segments.end()) return false;
    const HistorySegment whole = it->second;
    const uint64_t from = address + removed;
    const uint64_t to = std::min(end, whole.address + whole.size);
    segments.erase(it);
    if (from > whole.address) {
      HistorySegment left = whole;
      left.size = from - whole.address;
      segments.emplace(left.address, left);
    }
    if (to < whole.address + whole.size) {
      HistorySegment right = whole;
      right.address = to;
      right.size = whole.address + whole.size - to;
      segments.emplace(right.address, right);
    }
    removed += to - from;
  }
  return true;
}

class Reconstruction {
 public:
  Reconstruction(const Snapshot& snapshot, int16_t device, const AllocatorSettings& settings)
      : snapshot_(snapshot), settings_(settings) {
    history_.device = device;
    for (const SnapshotSegment& segment : snapshot.segments)
      if (segment.device == device) add_final(segment);
    final_segments_ = history_.segments;
  }

  DeviceHistory run(SnapshotTrace* trace) {
    if (trace == nullptr) return std::move(history_);
    for (auto it = trace->entries.rbegin(); it != trace->entries.rend(); ++it) undo(*it);
    guess_initial_sizes();
    segments_ = history_.segments;
    blocks_ = history_.blocks;
    for (SnapshotEntry& entry : trace->entries) replay(entry);
    return std::move(history_);
  }

 private:
  void add_final(const SnapshotSegment& segment) {
    history_.segments.insert_or_assign(
        segment.address, HistorySegment{segment.address, segment.size, segment.stream, segment.pool,
                                        segment.stack, segment.small_pool, segment.expandable});
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::free) continue;
      history_.blocks.insert_or_assign(
          block.address, HistoryBlock{block.address, block.size, block.requested, segment.stream,
                                      block.stack, block.state == BlockState::pending, false});
    }
  }

  // One step back in time.
  void undo(SnapshotEntry& entry) {
    switch (entry.kind) {
      case EventKind::block_alloc:
        undo_alloc(entry);
        break;
      case EventKind::block_free_completed:
        bring_back(entry, true);
        break;
      case EventKind::block_free: {
        const auto live = history_.blocks.find(entry.address);
        if (live != history_.blocks.end() && live->second.pending) {
          live->second.pending = false;
        } else {
          bring_back(entry, false);
        }
        break;
      }
      case EventKind::segment_alloc:
        if (history_.segments.erase(entry.address) == 0) ++history_.facts.segment_mismatches;
        break;
      case EventKind::segment_free:
        if (!history_.segments.emplace(entry.address, segment_of(entry, false)).second)
          ++history_.facts.segment_mismatches;
        break;
      case EventKind::segment_map:
        if (!unmap_range(history_.segments, entry.address, entry.size))
          ++history_.facts.segment_mismatches;
        break;
      case EventKind::segment_unmap:
        map_range(history_.segments, segment_of(entry, true));
        break;
      default:
        break;
    }
  }

  void undo_alloc(SnapshotEntry& entry) {
    const auto live = history_.blocks.find(entry.address);
    if (live == history_.blocks.end()) {
      ++history_.facts.alloc_without_block;
      return;
    }
    entry.size = live->second.size;  // known where the block lives at the end
    history_.blocks.erase(live);
  }

  void bring_back(const SnapshotEntry& entry, bool pending) {
    const auto [live, added] = history_.blocks.try_emplace(
        entry.address, HistoryBlock{entry.address, 0, entry.requested,
                                    snapshot_.streams[entry.stream], 0, pending, false});
    if (!added) ++history_.facts.free_of_live_block;
  }

  [[nodiscard]] HistorySegment segment_of(const SnapshotEntry& entry, bool expandable) const {
    const uint64_t chunk = expandable ? kSmallSegmentBytes : settings_.large_segment_size;
    HistorySegment segment{entry.address, entry.size,  snapshot_.streams[entry.stream],
                           entry.pool,    entry.stack, false,
                           expandable};
    // A segment of the large pool is 20 MiB or more, one of the small pool exactly 2 MiB.
    segment.small_pool = expandable ? entry.size % chunk == 0 && entry.size < kLargeSegmentBytes
                                    : entry.size == kSmallSegmentBytes;
    return segment;
  }

  // Blocks that were there before the trace and are freed in it: their request is known, their
  // size is at least its rounding. A gap behind one in the large pool that is too small to be
  // a block of its own belongs to it.
  void guess_initial_sizes() {
    for (auto it = history_.blocks.begin(); it != history_.blocks.end(); ++it) {
      HistoryBlock& block = it->second;
      if (block.size != 0) continue;
      block.size = settings_.round_size(block.requested);
      block.size_guessed = true;
      ++history_.facts.sizes_rounded;
      const auto segment = holding(history_.segments, block.address);
      if (segment == history_.segments.end() || segment->second.small_pool ||
          segment->second.expandable)
        continue;
      const uint64_t end = end_of_space(history_.blocks, it, segment->second);
      const uint64_t gap = end - std::min(end, block.address + block.size);
      if (gap <= kSmallPoolMax) block.size += gap;
    }
  }

  static uint64_t end_of_space(Blocks& blocks, Blocks::iterator block,
                               const HistorySegment& segment) {
    const uint64_t end = segment.address + segment.size;
    const auto next = std::next(block);
    return next == blocks.end() ? end : std::min(end, next->first);
  }

  // One step forward: the same state, now to see what each block was cut from.
  void replay(SnapshotEntry& entry) {
    switch (entry.kind) {
      case EventKind::block_alloc:
        replay_alloc(entry);
        break;
      case EventKind::block_free:
      case EventKind::block_free_completed:
        replay_free(entry);
        break;
      case EventKind::segment_alloc:
        set_segment_flags(
            entry,
            segments_.insert_or_assign(entry.address, segment_of(entry, false)).first->second);
        break;
      case EventKind::segment_free: {
        const auto segment = segments_.find(entry.address);
        if (segment == segments_.end()) break;
        set_segment_flags(entry, segment->second);
        segments_.erase(segment);
        break;
      }
      case EventKind::segment_map:
        replay_map(entry);
        break;
      case EventKind::segment_unmap:
        if (const auto segment = holding(segments_, entry.address); segment != segments_.end())
          set_segment_flags(entry, segment->second);
        entry.flags |= kEventExpandable;
        unmap_range(segments_, entry.address, entry.size);
        break;
      default:
        break;
    }
  }

  void replay_map(SnapshotEntry& entry) {
    HistorySegment range = segment_of(entry, true);
    // The pool of an expandable segment is known where it lives at the end, or from its neighbour.
    if (const auto before = holding(segments_, entry.address - 1);
        before != segments_.end() && before->second.expandable)
      range.small_pool = before->second.small_pool;
    if (const auto last = holding(final_segments_, entry.address); last != final_segments_.end())
      range.small_pool = last->second.small_pool;
    set_segment_flags(entry, range);
    map_range(segments_, range);
  }

  void set_segment_flags(SnapshotEntry& entry, const HistorySegment& segment) {
    if (segment.small_pool) entry.flags |= kEventSmallPool;
    if (segment.expandable) entry.flags |= kEventExpandable;
    if (entry.pool == 0) entry.pool = static_cast<uint16_t>(segment.pool);
    if (entry.pool != 0) entry.flags |= kEventPrivatePool;
  }

  void replay_alloc(SnapshotEntry& entry) {
    entry.flags |= kEventRequestedKnown;
    const uint64_t rounded = settings_.round_size(entry.requested);
    const auto segment = holding(segments_, entry.address);
    uint64_t size = rounded;
    if (segment == segments_.end()) {
      ++history_.facts.outside_segments;
      if (AllocatorSettings::small_pool(rounded)) entry.flags |= kEventSmallPool;
      if (entry.size == 0) ++history_.facts.sizes_rounded;
    } else {
      set_segment_flags(entry, segment->second);
      correct_guess_before(entry.address, segment->second);
      size = cut(entry.address, rounded, segment->second);
      if (entry.size == 0) {
        ++history_.facts.sizes_derived;
      } else {
        ++history_.facts.sizes_checked;
        if (entry.size != size) ++history_.facts.sizes_different;
      }
    }
    if (entry.size == 0) entry.size = size;
    blocks_.insert_or_assign(
        entry.address, HistoryBlock{entry.address, entry.size, entry.requested,
                                    snapshot_.streams[entry.stream], entry.stack, false, false});
  }

  // An allocation takes the front of a free range. Where it seems to leave a gap behind a block
  // whose size was guessed, that block is larger than the guess.
  void correct_guess_before(uint64_t address, const HistorySegment& segment) {
    auto before = blocks_.lower_bound(address);
    if (before == blocks_.begin()) return;
    HistoryBlock& block = std::prev(before)->second;
    if (!block.size_guessed || block.address < segment.address ||
        block.address + block.size >= address)
      return;
    block.size = address - block.address;
    if (const auto first = history_.blocks.find(block.address); first != history_.blocks.end())
      first->second.size = block.size;
  }

  // The size of the block that serves `rounded` bytes from the free range at `address`.
  uint64_t cut(uint64_t address, uint64_t rounded, const HistorySegment& segment) {
    const auto next = blocks_.upper_bound(address);
    uint64_t end = segment.address + segment.size;
    if (next != blocks_.end()) end = std::min(end, next->first);
    const uint64_t space = end - address;
    if (space <= rounded) return rounded;
    return settings_.should_split(space, rounded, segment.small_pool, segment.expandable) ? rounded
                                                                                          : space;
  }

  void replay_free(SnapshotEntry& entry) {
    entry.flags |= kEventRequestedKnown;
    const auto live = blocks_.find(entry.address);
    entry.size = live == blocks_.end() ? settings_.round_size(entry.requested) : live->second.size;
    if (const auto segment = holding(segments_, entry.address); segment != segments_.end())
      set_segment_flags(entry, segment->second);
    if (live == blocks_.end()) return;
    if (entry.kind == EventKind::block_free_completed) {
      blocks_.erase(live);
    } else {
      live->second.pending = true;
    }
  }

  const Snapshot& snapshot_;
  const AllocatorSettings& settings_;
  DeviceHistory history_;
  Segments final_segments_;
  Segments segments_;
  Blocks blocks_;
};

}  // namespace

DeviceHistory reconstruct(const Snapshot& snapshot, int16_t device, SnapshotTrace* trace,
                          const AllocatorSettings& settings) {
  return Reconstruction(snapshot, device, settings).run(trace);
}

}  // namespace vramtrack
