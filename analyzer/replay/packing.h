// How far from ideal: the same blocks, with their lifetimes known in advance, packed by somebody
// who can see the future.
//
// The most bytes that are alive at once (max-load) are a lower bound for any allocator that does
// not move blocks. The best packing found is an upper bound for the ideal one. What a caching
// allocator reserves beyond it is fragmentation; what lies between the two bounds nobody knows,
// because the problem is NP-hard.
//
// Everything here is deterministic: effort is counted in steps, never in seconds.
#ifndef VRAMTRACK_ANALYZER_REPLAY_PACKING_H
#define VRAMTRACK_ANALYZER_REPLAY_PACKING_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vramtrack {

struct PackingItem {
  uint64_t begin = 0;  // alive from here
  uint64_t end = 0;    // to just before here
  uint64_t size = 0;
};

struct Packing {
  std::vector<uint64_t> offsets;  // one per item, in their order
  uint64_t height = 0;
};

// The most bytes alive at once.
uint64_t max_load(std::span<const PackingItem> items);

// Whether no two items that live at the same time overlap, and all stay below `height`.
bool is_valid(std::span<const PackingItem> items, const Packing& packing);

// A packing within `capacity`, searched exhaustively as far as `effort` steps go.
std::optional<Packing> pack_within(std::span<const PackingItem> items, uint64_t capacity,
                                   uint64_t effort);

// A good packing: the best of several greedy orders, improved by the search while effort lasts.
Packing pack(std::span<const PackingItem> items, uint64_t effort);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_PACKING_H
