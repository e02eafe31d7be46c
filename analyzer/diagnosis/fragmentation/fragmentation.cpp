#include "diagnosis/fragmentation/fragmentation.h"

#include <algorithm>
#include <deque>
#include <set>

#include "attribution/call_site.h"
#include "import/allocator_settings.h"

namespace vramtrack {
namespace {

constexpr size_t kRecentRequests = 10'000;
constexpr uint64_t kPinnedShare = 4;  // live blocks take less than a fourth

// The smallest request of each pool and stream among the last ones before the moment.
class RecentRequests {
 public:
  void add(const Event& event) {
    const PoolKey key{event.object, event.stream, AllocatorSettings::small_pool(event.size)};
    recent_.push_back({key, event.size});
    ++counts_[key][event.size];
    if (recent_.size() <= kRecentRequests) return;
    const auto [old, size] = recent_.front();
    recent_.pop_front();
    auto& sizes = counts_[old];
    if (--sizes[size] == 0) sizes.erase(size);
    if (sizes.empty()) counts_.erase(old);
  }
  void add_live(const PoolKey& key, uint64_t size) { ++counts_[key][size]; }

  [[nodiscard]] bool empty() const { return counts_.empty(); }
  // 0: nothing was asked for there.
  [[nodiscard]] uint64_t smallest(const PoolKey& key) const {
    const auto sizes = counts_.find(key);
    return sizes == counts_.end() ? 0 : sizes->second.begin()->first;
  }
  [[nodiscard]] uint64_t smallest() const {
    uint64_t least = ~uint64_t{0};
    for (const auto& [key, sizes] : counts_) least = std::min(least, sizes.begin()->first);
    return counts_.empty() ? 0 : least;
  }

 private:
  struct Request {
    PoolKey key;
    uint64_t size;
  };
  std::deque<Request> recent_;
  std::map<PoolKey, std::map<uint64_t, uint64_t>> counts_;
};

RecentRequests requests_before(const Recording& recording, int16_t device, const Moment& moment) {
  RecentRequests requests;
  recording.for_each([&](const Event& event) {
    if (moment.by_time ? event.time_ns > moment.time_ns : event.sequence > moment.sequence)
      return false;
    if (event.kind == EventKind::block_alloc && event.device == device &&
        (event.flags & kEventReconstructed) == 0)
      requests.add(event);
    return true;
  });
  return requests;
}

PoolKey key_of(const FragmentedSegment& segment) {
  return {segment.pool, segment.stream, segment.small_pool};
}

// The part of a hole in an expandable segment that consists of whole pages.
uint64_t whole_pages(const FragmentedSegment& segment, uint64_t begin, uint64_t end) {
  const uint64_t page = segment.small_pool ? kSmallSegmentBytes : kLargeSegmentBytes;
  const uint64_t first = (begin - segment.address + page - 1) / page * page;
  const uint64_t last = (end - segment.address) / page * page;
  return last > first ? last - first : 0;
}

void add_hole(FragmentedSegment& segment, uint64_t begin, uint64_t end, uint64_t smallest) {
  const auto push = [&](uint64_t address, uint64_t size, HoleReason reason) {
    if (size != 0) segment.holes.push_back({address, size, reason});
  };
  const uint64_t size = end - begin;
  segment.free += size;
  segment.largest_hole = std::max(segment.largest_hole, size);
  if (segment.blocks.empty()) return push(begin, size, HoleReason::releasable);
  const uint64_t pages = segment.expandable ? whole_pages(segment, begin, end) : 0;
  push(begin, pages, HoleReason::releasable);
  const HoleReason reason = smallest != 0 && size < smallest ? HoleReason::too_small
                            : segment.pinned                 ? HoleReason::pinned
                                                             : HoleReason::reusable;
  push(begin + pages, size - pages, reason);
}

// A trace of our own does not say which pool a segment is of, but its size or its blocks do.
bool is_small_pool(const Segment& segment) {
  if (segment.small_pool) return true;
  if (!segment.expandable) return segment.size == kSmallSegmentBytes;
  return !segment.blocks.empty() && AllocatorSettings::small_pool(segment.blocks.front()->size);
}

FragmentedSegment look_at(const Segment& segment, const RecentRequests& requests) {
  FragmentedSegment out;
  out.address = segment.address;
  out.size = segment.size;
  out.stream = segment.stream;
  out.pool = segment.pool;
  out.small_pool = is_small_pool(segment);
  out.expandable = segment.expandable;
  out.live = segment.allocated;
  out.pinned = !segment.small_pool && segment.allocated != 0 && segment.pending == 0 &&
               segment.allocated < segment.size / kPinnedShare;
  for (const Block* block : segment.blocks)
    out.blocks.push_back(
        {block->address, block->size, block->requested, block->stack, block->pending});
  const uint64_t smallest = requests.smallest(key_of(out));
  uint64_t at = out.address;
  for (const SegmentBlock& block : out.blocks) {
    if (block.address > at) add_hole(out, at, block.address, smallest);
    if (block.pending) out.holes.push_back({block.address, block.size, HoleReason::pending});
    at = std::max(at, block.address + block.size);
  }
  if (at < out.address + out.size) add_hole(out, at, out.address + out.size, smallest);
  return out;
}

std::vector<Pin> find_pins(const std::vector<FragmentedSegment>& segments,
                           const Definitions& definitions) {
  std::map<std::string, Pin> by_site;
  for (const FragmentedSegment& segment : segments) {
    if (!segment.pinned) continue;
    std::set<std::string> counted;
    const uint64_t share = segment.free / segment.blocks.size();
    for (const SegmentBlock& block : segment.blocks) {
      const std::string site = call_site(definitions, block.stack);
      Pin& pin = by_site[site];
      pin.site = site;
      pin.stack = block.stack;
      ++pin.blocks;
      pin.bytes += block.size;
      pin.pinned += share;
      if (counted.insert(site).second) ++pin.segments;
    }
  }
  std::vector<Pin> pins;
  pins.reserve(by_site.size());
  for (auto& [site, pin] : by_site) pins.push_back(std::move(pin));
  std::stable_sort(pins.begin(), pins.end(),
                   [](const Pin& a, const Pin& b) { return a.pinned > b.pinned; });
  return pins;
}

double ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

}  // namespace

void FragmentationSums::add(const FragmentedSegment& segment) {
  ++segments;
  reserved += segment.size;
  for (const SegmentBlock& block : segment.blocks) {
    if (block.pending) continue;
    allocated += block.size;
    requested += block.requested == 0 ? block.size : std::min(block.requested, block.size);
  }
  free = reserved - allocated;
  largest_free = std::max(largest_free, segment.largest_hole);
  uint64_t gap_begin = 0;
  double gap = 0;
  for (const Hole& hole : segment.holes) {
    by_reason[static_cast<size_t>(hole.reason)] += hole.size;
    if (hole.reason == HoleReason::pending) continue;
    // What is cut in two by reason is one gap.
    if (gap_begin != hole.address || gap == 0) {
      squares += gap * gap;
      gap = 0;
      ++holes;
    }
    gap += static_cast<double>(hole.size);
    gap_begin = hole.address + hole.size;
  }
  squares += gap * gap;
}

double FragmentationSums::utilisation() const {
  return ratio(static_cast<double>(allocated), static_cast<double>(reserved));
}

double FragmentationSums::availability() const {
  return ratio(static_cast<double>(largest_free), static_cast<double>(free));
}

double FragmentationSums::gap_index() const {
  const auto whole = static_cast<double>(reserved);
  return ratio(squares, whole * whole);
}

Fragmentation analyze_fragmentation(const Recording& recording, const Timeline& timeline,
                                    int16_t device, const std::string& at) {
  Fragmentation result;
  result.device = device;
  result.moment = find_moment(timeline, at, device);
  RecentRequests requests = requests_before(recording, device, result.moment);
  result.requests_known = !requests.empty();
  visit_states(recording, {result.moment}, [&](size_t /*index*/, const MemoryState& state) {
    result.in_use = state.totals(device).in_use;
    const std::vector<Segment> segments = state.segments(device);
    if (!result.requests_known)
      for (const Segment& segment : segments)
        for (const Block* block : segment.blocks)
          requests.add_live({segment.pool, segment.stream, is_small_pool(segment)}, block->size);
    result.smallest_request = requests.smallest();
    for (const Segment& segment : segments) {
      result.segments.push_back(look_at(segment, requests));
      const FragmentedSegment& looked_at = result.segments.back();
      result.total.add(looked_at);
      result.pools[key_of(looked_at)].add(looked_at);
    }
  });
  result.pins = find_pins(result.segments, recording.definitions());
  return result;
}

std::vector<int16_t> devices_with_segments(const Timeline& timeline) {
  std::vector<int16_t> devices;
  for (const auto& [device, course] : timeline.devices)
    if (device >= 0 && (course.has_blocks || course.most_reserved != 0)) devices.push_back(device);
  return devices;
}

}  // namespace vramtrack
