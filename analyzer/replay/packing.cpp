#include "replay/packing.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace vramtrack {
namespace {

using Index = uint32_t;

// Beyond this many items nobody compares every pair: the greedy orders are left out.
constexpr size_t kMaxPairwise = 6000;
constexpr size_t kMaxSearched = 2000;

// The items in an order; each goes to the lowest gap that holds it among those that live with it.
Packing greedy(std::span<const PackingItem> items, std::span<const Index> order) {
  Packing packing;
  packing.offsets.resize(items.size(), 0);
  std::vector<Index> placed;
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (const Index i : order) {
    const PackingItem& item = items[i];
    taken.clear();
    for (const Index other : placed)
      if (items[other].begin < item.end && item.begin < items[other].end)
        taken.emplace_back(packing.offsets[other], packing.offsets[other] + items[other].size);
    std::sort(taken.begin(), taken.end());
    uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + item.size) break;
      offset = std::max(offset, end);
    }
    packing.offsets[i] = offset;
    packing.height = std::max(packing.height, offset + item.size);
    placed.push_back(i);
  }
  return packing;
}

struct Change {
  uint64_t time;
  bool begins;
  Index item;
};

std::vector<Change> changes_of(std::span<const PackingItem> items) {
  std::vector<Change> changes;
  changes.reserve(items.size() * 2);
  for (Index i = 0; i < items.size(); ++i) {
    if (items[i].begin >= items[i].end) continue;
    changes.push_back({items[i].begin, true, i});
    changes.push_back({items[i].end, false, i});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return !a.begins;  // ends first: the place is free again
    return a.item < b.item;
  });
  return changes;
}

// In the order of time, best fit: what an allocator without segments and without foresight does.
Packing in_time(std::span<const PackingItem> items) {
  Packing packing;
  packing.offsets.resize(items.size(), 0);
  std::map<uint64_t, uint64_t> free{{0, ~uint64_t{0}}};  // begin, end
  for (const Change& change : changes_of(items)) {
    const uint64_t size = items[change.item].size;
    if (change.begins) {
      auto best = free.end();
      for (auto it = free.begin(); it != free.end(); ++it) {
        const uint64_t room = it->second - it->first;
        if (room < size) continue;
        if (best == free.end() || room < best->second - best->first) best = it;
      }
      const auto [begin, end] = *best;
      free.erase(best);
      if (end - begin > size) free.emplace(begin + size, end);
      packing.offsets[change.item] = begin;
      packing.height = std::max(packing.height, begin + size);
      continue;
    }
    uint64_t begin = packing.offsets[change.item];
    uint64_t end = begin + size;
    auto next = free.lower_bound(begin);
    if (next != free.end() && next->first == end) {
      end = next->second;
      next = free.erase(next);
    }
    if (next != free.begin() && std::prev(next)->second == begin) {
      begin = std::prev(next)->first;
      free.erase(std::prev(next));
    }
    if (size != 0) free.emplace(begin, end);
  }
  return packing;
}

std::vector<Index> order_by(size_t count, const auto& before) {
  std::vector<Index> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

}  // namespace

uint64_t max_load(std::span<const PackingItem> items) {
  uint64_t load = 0;
  uint64_t most = 0;
  for (const Change& change : changes_of(items)) {
    load = change.begins ? load + items[change.item].size : load - items[change.item].size;
    most = std::max(most, load);
  }
  return most;
}

bool is_valid(std::span<const PackingItem> items, const Packing& packing) {
  if (packing.offsets.size() != items.size()) return false;
  std::map<uint64_t, uint64_t> live;  // offset, end
  for (const Change& change : changes_of(items)) {
    const uint64_t offset = packing.offsets[change.item];
    const uint64_t end = offset + items[change.item].size;
    if (items[change.item].size == 0) continue;
    if (!change.begins) {
      live.erase(offset);
      continue;
    }
    if (end > packing.height) return false;
    const auto next = live.lower_bound(offset);
    if (next != live.end() && next->first < end) return false;
    if (next != live.begin() && std::prev(next)->second > offset) return false;
    live.emplace(offset, end);
  }
  return true;
}

Packing pack(std::span<const PackingItem> items, uint64_t effort) {
  Packing best = in_time(items);
  const auto consider = [&](Packing other) {
    if (other.height < best.height) best = std::move(other);
  };
  const uint64_t bound = max_load(items);
  if (items.size() <= kMaxPairwise) {
    const auto width = [&](Index i) { return items[i].end - items[i].begin; };
    const auto area = [&](Index i) {
      return static_cast<double>(width(i)) * static_cast<double>(items[i].size);
    };
    consider(greedy(items, order_by(items.size(), [&](Index a, Index b) {
                      return items[a].size > items[b].size;
                    })));
    consider(greedy(items,
                    order_by(items.size(), [&](Index a, Index b) { return width(a) > width(b); })));
    consider(
        greedy(items, order_by(items.size(), [&](Index a, Index b) { return area(a) > area(b); })));
  }
  if (items.size() > kMaxSearched) return best;
  // Halve the distance to the lower bound while the search succeeds.
  uint64_t low = bound;
  while (best.height > bound && effort != 0) {
    const uint64_t share = std::max<uint64_t>(effort / 4, 1);
    const uint64_t target = low + (best.height - 1 - low) / 2;
    if (auto found = pack_within(items, target, share)) {
      best = *std::move(found);
    } else {
      low = target + 1;
    }
    effort -= share;
    if (low >= best.height) break;
  }
  return best;
}

}  // namespace vramtrack
