// An exhaustive search for a packing below a given height.
//
// It looks only at settled packings, in which nothing can slide down, and builds each from below:
// the next item goes to the lowest place it has, never below the one before. For every stretch of
// time in which the set of living items is the same (a section), the lowest place that is left plus
// all that must still be placed there is a lower bound; above the height it cuts the branch. Where
// a section has nothing left to place, its two sides no longer touch and are searched apart.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "replay/packing.h"

namespace vramtrack {
namespace {

using Index = uint32_t;

struct Item {
  uint64_t size = 0;
  Index first = 0;  // sections first .. last - 1
  Index last = 0;
  Index source = 0;  // index in the caller's list
};

class Search {
 public:
  Search(std::vector<Item> items, size_t sections, uint64_t capacity, uint64_t effort,
         std::vector<double>& blame)
      : items_(std::move(items)), blame_(blame), capacity_(capacity), effort_(effort) {
    floor_.resize(items_.size(), 0);
    offset_.resize(items_.size(), 0);
    left_.resize(sections, 0);
    count_.resize(sections, 0);
    section_floor_.resize(sections, 0);
    overlaps_.resize(items_.size());
    for (Index a = 0; a < items_.size(); ++a) {
      for (Index s = items_[a].first; s < items_[a].last; ++s) {
        left_[s] += items_[a].size;
        ++count_[s];
      }
      for (Index b = 0; b < items_.size(); ++b)
        if (a != b && items_[a].first < items_[b].last && items_[b].first < items_[a].last)
          overlaps_[a].push_back(b);
    }
    placed_.resize(items_.size(), false);
  }

  bool run() {
    std::vector<Index> all(items_.size());
    std::iota(all.begin(), all.end(), 0);
    return split(all, 0, 0);
  }
  [[nodiscard]] uint64_t offset(Index item) const { return offset_[item]; }
  [[nodiscard]] bool exhausted() const { return effort_ == 0; }

 private:
  struct Undo {
    Index item;
    uint64_t floor;
  };

  // Solves the parts of `open` that share no section one after the other.
  bool split(const std::vector<Index>& open, uint64_t from, Index from_item) {
    std::vector<Index> sorted = open;
    std::sort(sorted.begin(), sorted.end(),
              [&](Index a, Index b) { return items_[a].first < items_[b].first; });
    size_t begin = 0;
    while (begin < sorted.size()) {
      size_t end = begin;
      Index reach = 0;
      for (; end < sorted.size() && (end == begin || items_[sorted[end]].first < reach); ++end)
        reach = std::max(reach, items_[sorted[end]].last);
      std::vector<Index> part(sorted.begin() + static_cast<long>(begin),
                              sorted.begin() + static_cast<long>(end));
      std::sort(part.begin(), part.end());
      if (!place_next(part, from, from_item)) {
        undo_parts(sorted, begin);
        return false;
      }
      begin = end;
    }
    return true;
  }

  // A part failed: those before it were placed for nothing.
  void undo_parts(const std::vector<Index>& sorted, size_t end) {
    for (size_t i = 0; i < end; ++i) unplace(sorted[i]);
  }

  bool place_next(const std::vector<Index>& open, uint64_t from, Index from_item) {
    if (open.empty()) return true;
    if (effort_ == 0) return false;
    --effort_;
    if (!fits(open, from)) return false;
    // An item that would end below a place need not be left for later by going to that place.
    uint64_t lowest_top = ~uint64_t{0};
    for (const Index item : open)
      if (usable(item, from, from_item))
        lowest_top = std::min(lowest_top, floor_[item] + items_[item].size);
    std::vector<Index> candidates;
    for (const Index item : open)
      if (usable(item, from, from_item) && floor_[item] < lowest_top) candidates.push_back(item);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](Index a, Index b) { return floor_[a] < floor_[b]; });
    for (const Index item : candidates) {
      if (try_place(open, item)) return true;
      if (effort_ == 0) return false;
    }
    return false;
  }

  // Items of equal height go in the order of their indices: every other order gives the same.
  [[nodiscard]] bool usable(Index item, uint64_t from, Index from_item) const {
    return floor_[item] > from || (floor_[item] == from && item >= from_item);
  }

  bool try_place(const std::vector<Index>& open, Index item) {
    const uint64_t offset = floor_[item];
    const uint64_t top = offset + items_[item].size;
    const size_t mark = trail_.size();
    place(item, offset);
    for (const Index other : overlaps_[item]) {
      if (placed_[other] || floor_[other] >= top) continue;
      trail_.push_back({other, floor_[other]});
      floor_[other] = top;
    }
    std::vector<Index> rest;
    rest.reserve(open.size() - 1);
    for (const Index other : open)
      if (other != item) rest.push_back(other);
    if (continue_with(rest, item, offset)) return true;
    while (trail_.size() > mark) {
      floor_[trail_.back().item] = trail_.back().floor;
      trail_.pop_back();
    }
    unplace(item);
    return false;
  }

  bool continue_with(const std::vector<Index>& rest, Index item, uint64_t offset) {
    bool cut = false;
    for (Index s = items_[item].first; s < items_[item].last && !cut; ++s) cut = count_[s] == 0;
    if (!cut) return place_next(rest, offset, item + 1);
    return split(rest, offset, item + 1);
  }

  void place(Index item, uint64_t offset) {
    offset_[item] = offset;
    placed_[item] = true;
    for (Index s = items_[item].first; s < items_[item].last; ++s) {
      left_[s] -= items_[item].size;
      --count_[s];
    }
  }
  void unplace(Index item) {
    placed_[item] = false;
    for (Index s = items_[item].first; s < items_[item].last; ++s) {
      left_[s] += items_[item].size;
      ++count_[s];
    }
  }

  // Whether every section can still hold what is left for it.
  bool fits(const std::vector<Index>& open, uint64_t from) {
    Index first = ~Index{0};
    Index last = 0;
    for (const Index item : open) {
      first = std::min(first, items_[item].first);
      last = std::max(last, items_[item].last);
    }
    std::fill(section_floor_.begin() + first, section_floor_.begin() + last, ~uint64_t{0});
    for (const Index item : open) {
      const uint64_t floor = std::max(floor_[item], from);
      if (floor + items_[item].size > capacity_) {
        ++blame_[items_[item].source];
        return false;
      }
      for (Index s = items_[item].first; s < items_[item].last; ++s)
        section_floor_[s] = std::min(section_floor_[s], floor);
    }
    for (Index s = first; s < last; ++s)
      if (count_[s] != 0 && section_floor_[s] + left_[s] > capacity_) {
        blame_section(open, s);
        return false;
      }
    return true;
  }

  void blame_section(const std::vector<Index>& open, Index section) {
    for (const Index item : open)
      if (items_[item].first <= section && section < items_[item].last)
        ++blame_[items_[item].source];
  }

  std::vector<Item> items_;
  std::vector<double>& blame_;  // by source: how often an item had no place
  std::vector<std::vector<Index>> overlaps_;
  uint64_t capacity_;
  uint64_t effort_;
  std::vector<uint64_t> floor_;   // the lowest place each item has
  std::vector<uint64_t> offset_;  // where placed items are
  std::vector<uint64_t> left_;    // bytes still to be placed, by section
  std::vector<Index> count_;      // items still to be placed, by section
  std::vector<uint64_t> section_floor_;
  std::vector<bool> placed_;
  std::vector<Undo> trail_;
};

// The lifetimes in terms of sections, which begin and end where some lifetime does.
size_t divide(std::span<const PackingItem> items, std::vector<Item>& out) {
  std::vector<uint64_t> times;
  for (const PackingItem& item : items) {
    times.push_back(item.begin);
    times.push_back(item.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](uint64_t time) {
    return static_cast<Index>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (Index i = 0; i < items.size(); ++i) {
    if (items[i].begin >= items[i].end || items[i].size == 0) continue;
    out.push_back({items[i].size, section(items[i].begin), section(items[i].end), i});
  }
  return times.size();
}

struct Rank {
  uint64_t load = 0;  // the most bytes alive while the item lives
  uint64_t width = 0;
  double area = 0;
};

std::vector<Rank> ranks_of(std::span<const PackingItem> items, const std::vector<Item>& divided,
                           size_t sections) {
  std::vector<uint64_t> load(sections, 0);
  for (const Item& item : divided)
    for (Index s = item.first; s < item.last; ++s) load[s] += item.size;
  std::vector<Rank> ranks(items.size());
  for (const Item& item : divided) {
    Rank& rank = ranks[item.source];
    rank.load = *std::max_element(load.begin() + item.first, load.begin() + item.last);
    rank.width = items[item.source].end - items[item.source].begin;
    rank.area = static_cast<double>(rank.width) * static_cast<double>(item.size);
  }
  return ranks;
}

// In which order items that could go to the same height are tried. No order is best everywhere.
constexpr int kOrders = 4;

bool before(int order, const Rank& a, const Rank& b, const Item& x, const Item& y) {
  static constexpr std::array<std::array<char, 3>, kOrders> kKeys = {
      {{'l', 'w', 'a'}, {'l', 'a', 'w'}, {'w', 'l', 'a'}, {'a', 'w', 's'}}};
  for (const char key : kKeys[static_cast<size_t>(order)]) {
    if (key == 'l' && a.load != b.load) return a.load > b.load;
    if (key == 'w' && a.width != b.width) return a.width > b.width;
    if (key == 'a' && a.area != b.area) return a.area > b.area;
    if (key == 's' && x.size != y.size) return x.size > y.size;
  }
  return false;
}

// Attempts at one problem, that learn from each other.
class Attempts {
 public:
  Attempts(std::span<const PackingItem> items, uint64_t capacity)
      : items_(items), sections_(divide(items, divided_)), capacity_(capacity) {
    ranks_ = ranks_of(items, divided_, sections_);
    for (auto& blame : blame_) blame.resize(items.size(), 0);
  }

  enum class Result { found, none, gave_up };

  // With `learned`, items that had no place in earlier attempts in this order come first.
  Result attempt(int order, bool learned, uint64_t steps) {
    static constexpr double kForget = 0.9;
    std::vector<double>& blame = blame_[static_cast<size_t>(order)];
    std::vector<Item> sorted = divided_;
    // In coarse steps, so that the order counts among items of like difficulty.
    const auto difficulty = [&](const Item& item) {
      return learned ? std::floor(std::log2(blame[item.source] + 1)) : 0;
    };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const Item& x, const Item& y) {
      const double a = difficulty(x);
      const double b = difficulty(y);
      if (a != b) return a > b;
      return before(order, ranks_[x.source], ranks_[y.source], x, y);
    });
    for (double& share : blame) share *= kForget;
    Search search(sorted, sections_, capacity_, steps, blame);
    if (!search.run()) return search.exhausted() ? Result::gave_up : Result::none;
    packing_.offsets.assign(items_.size(), 0);
    for (Index i = 0; i < sorted.size(); ++i) {
      packing_.offsets[sorted[i].source] = search.offset(i);
      packing_.height = std::max(packing_.height, search.offset(i) + sorted[i].size);
    }
    return Result::found;
  }
  [[nodiscard]] const Packing& packing() const { return packing_; }

 private:
  std::span<const PackingItem> items_;
  std::vector<Item> divided_;
  size_t sections_;
  uint64_t capacity_;
  std::vector<Rank> ranks_;
  std::array<std::vector<double>, kOrders> blame_;
  Packing packing_;
};

}  // namespace

std::optional<Packing> pack_within(std::span<const PackingItem> items, uint64_t capacity,
                                   uint64_t effort) {
  constexpr uint64_t kShort = 2000;
  if (max_load(items) > capacity) return std::nullopt;
  Attempts attempts(items, capacity);
  // Half of the effort goes into short attempts that learn, half into ever longer ones that do not.
  for (uint64_t patience = 1000; effort != 0; patience *= 4) {
    const uint64_t rounds = 1 + patience / kShort;
    for (uint64_t round = 0; round <= rounds; ++round) {
      const bool learned = round != 0;
      for (int order = 0; order < kOrders && effort != 0; ++order) {
        const uint64_t steps = std::min(learned ? kShort : patience, effort);
        const Attempts::Result result = attempts.attempt(order, learned, steps);
        if (result == Attempts::Result::found) return attempts.packing();
        if (result == Attempts::Result::none) return std::nullopt;  // the whole tree was seen
        effort -= steps;
      }
    }
  }
  return std::nullopt;
}

}  // namespace vramtrack
