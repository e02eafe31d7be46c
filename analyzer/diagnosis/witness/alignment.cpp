// The member i of n can only be paired with i .. i + surplus of m = n + surplus, so that a table of
// n * (surplus + 1) holds all there is to choose. Beyond a limit the pairing is in order.
#include "diagnosis/witness/alignment.h"

#include <limits>

namespace vramtrack {
namespace {

constexpr size_t kMostCells = size_t{1} << 24;

uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

}  // namespace

std::vector<size_t> align(std::span<const uint64_t> fewer, std::span<const uint64_t> more) {
  const size_t count = fewer.size();
  std::vector<size_t> partners(count);
  for (size_t i = 0; i < count; ++i) partners[i] = i;
  if (count == 0 || more.size() <= count) return partners;
  const size_t width = more.size() - count + 1;
  if (width > kMostCells / count) return partners;

  // cost[i][s]: the least for members 0..i, where i is paired with at most i + s.
  std::vector<uint64_t> cost(count * width);
  std::vector<bool> taken(count * width);  // i is paired with exactly i + s
  for (size_t i = 0; i < count; ++i) {
    uint64_t best = std::numeric_limits<uint64_t>::max();
    for (size_t s = 0; s < width; ++s) {
      const uint64_t before = i == 0 ? 0 : cost[(i - 1) * width + s];
      const uint64_t with_this = before + distance(fewer[i], more[i + s]);
      if (with_this < best) {
        best = with_this;
        taken[i * width + s] = true;
      }
      cost[i * width + s] = best;
    }
  }
  size_t s = width - 1;
  for (size_t i = count; i-- > 0;) {
    while (!taken[i * width + s]) --s;
    partners[i] = i + s;
  }
  return partners;
}

}  // namespace vramtrack
