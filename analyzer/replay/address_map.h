// Ranges of addresses that do not overlap, found by the address they start at or by any address in
// them. T has `address` and `size`.
//
// A balanced tree on purpose: exact look-ups are what the replay does most, and there a hash table
// would win by half, but neighbours and overlaps are what tells a lost event from a sound one.
#ifndef VRAMTRACK_ANALYZER_REPLAY_ADDRESS_MAP_H
#define VRAMTRACK_ANALYZER_REPLAY_ADDRESS_MAP_H

#include <cstdint>
#include <map>
#include <memory_resource>
#include <utility>

namespace vramtrack {

template <class T>
class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  // Starting at `address`; nullptr where none does.
  T* at(uint64_t address) {
    found_ = ranges_.find(address);
    return found_ == ranges_.end() ? nullptr : &found_->second;
  }
  // Holding `address`; nullptr where none does.
  T* holding(uint64_t address) {
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return nullptr;
    T& candidate = std::prev(after)->second;
    return address - candidate.address < candidate.size ? &candidate : nullptr;
  }
  // The first that overlaps [address, address + size); nullptr where none does.
  T* overlapping(uint64_t address, uint64_t size) {
    auto after = ranges_.upper_bound(address);
    hint_ = after;
    if (after != ranges_.begin()) {
      T& before = std::prev(after)->second;
      if (address - before.address < before.size) return &before;
    }
    return after != ranges_.end() && after->first - address < size ? &after->second : nullptr;
  }
  T& insert(T range) {
    const uint64_t address = range.address;
    return ranges_.insert_or_assign(hint_, address, std::move(range))->second;
  }
  void erase(uint64_t address) {
    if (found_ == ranges_.end() || found_->first != address) found_ = ranges_.find(address);
    if (found_ != ranges_.end()) ranges_.erase(found_);
    found_ = hint_ = ranges_.end();
  }

  [[nodiscard]] size_t size() const { return ranges_.size(); }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  // By address. `visit` must not add or remove.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [address, range] : ranges_) visit(range);
  }
  // Those that begin in [begin, end), by address.
  template <class Visit>
  void for_each_in(uint64_t begin, uint64_t end, Visit&& visit) {
    for (auto at = ranges_.lower_bound(begin); at != ranges_.end() && at->first < end; ++at) {
      visit(at->second);
    }
  }

 private:
  using Ranges = std::pmr::map<uint64_t, T>;

  std::pmr::unsynchronized_pool_resource nodes_;
  Ranges ranges_{&nodes_};
  // A look-up is mostly followed by a change at the same place; these save the second search.
  typename Ranges::iterator found_ = ranges_.end();
  typename Ranges::iterator hint_ = ranges_.end();
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_ADDRESS_MAP_H
