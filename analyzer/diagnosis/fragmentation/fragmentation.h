// Where the reserved memory of a caching allocator is that nobody uses, and why it stays.
//
//   segment   |####..####......................|   # live block   . hole
//
// Each hole has one reason:
//   releasable   its segment has no live block (or, in an expandable segment, whole pages of it):
//                emptying the cache returns it
//   pending      freed, but a stream is not done with it
//   too small    nothing that was asked for lately in its pool and stream fits
//   pinned       live blocks take less than a quarter of its segment, and keep all of it
//   reusable     the rest: the next requests will find it
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_H

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

enum class HoleReason : uint8_t { releasable, pending, too_small, pinned, reusable };
inline constexpr size_t kHoleReasons = 5;
inline constexpr std::array<std::string_view, kHoleReasons> kHoleReasonNames = {
    "releasable", "pending", "too_small", "pinned", "reusable"};

struct Hole {
  uint64_t address = 0;
  uint64_t size = 0;
  HoleReason reason = HoleReason::reusable;
};

struct SegmentBlock {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t requested = 0;  // 0 unknown
  StackId stack = 0;
  bool pending = false;
};

struct FragmentedSegment {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;  // 0 the default pool, else a CUDA graph's or a user's
  bool small_pool = false;
  bool expandable = false;
  uint64_t live = 0;  // bytes of live blocks
  uint64_t free = 0;  // bytes of holes, pending blocks not among them
  uint64_t largest_hole = 0;
  bool pinned = false;
  std::vector<SegmentBlock> blocks;
  std::vector<Hole> holes;
};

// The same sums for everything, and for each pool and stream apart.
struct FragmentationSums {
  uint64_t segments = 0;
  uint64_t reserved = 0;
  uint64_t allocated = 0;
  uint64_t requested = 0;  // of the allocated, as far as it is known, else the block's size
  uint64_t free = 0;       // reserved - allocated
  uint64_t largest_free = 0;
  uint64_t holes = 0;
  std::array<uint64_t, kHoleReasons> by_reason{};
  double squares = 0;  // sum of gap^2

  void add(const FragmentedSegment& segment);
  [[nodiscard]] uint64_t rounding() const { return allocated - requested; }
  // allocated / reserved; 1 is perfect.
  [[nodiscard]] double utilisation() const;
  // largest free block / total free: 1 means that all that is free can serve one request.
  [[nodiscard]] double availability() const;
  // sum of gap^2 / reserved^2, the measure of PyTorch's own viewer.
  [[nodiscard]] double gap_index() const;
};

struct PoolKey {
  uint64_t pool = 0;
  uint64_t stream = 0;
  bool small_pool = false;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that it compares with is the compiler's
  auto operator<=>(const PoolKey&) const = default;
};

// A line of the program whose blocks keep large segments.
struct Pin {
  std::string site;
  StackId stack = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;     // of these blocks
  uint64_t segments = 0;  // that they are in
  uint64_t pinned = 0;    // free bytes of those segments, shared among their blocks by number
};

struct Fragmentation {
  int16_t device = 0;
  Moment moment;
  uint64_t in_use = 0;            // with what no caching allocator manages
  bool requests_known = true;     // false: no requests before the moment; live blocks stand in
  uint64_t smallest_request = 0;  // recently, of all pools
  FragmentationSums total;
  std::map<PoolKey, FragmentationSums> pools;
  std::vector<FragmentedSegment> segments;  // by address
  std::vector<Pin> pins;                    // most pinned first
};

// `at` as in `vramtrack report --at`.
Fragmentation analyze_fragmentation(const Recording& recording, const Timeline& timeline,
                                    int16_t device, const std::string& at);

// Devices on which a caching allocator was seen.
std::vector<int16_t> devices_with_segments(const Timeline& timeline);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_H
