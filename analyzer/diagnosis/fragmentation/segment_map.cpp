#include "diagnosis/fragmentation/segment_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr size_t kCells = 30;

// Adds the bytes of [begin, end) to the cells it covers.
void cover(std::vector<double>& cells, double cell_bytes, double begin, double end) {
  auto cell = static_cast<size_t>(begin / cell_bytes);
  while (begin < end && cell < cells.size()) {
    const double border = std::min(end, static_cast<double>(cell + 1) * cell_bytes);
    cells[cell++] += border - begin;
    begin = border;
  }
}

std::string line(const FragmentedSegment& segment) {
  const size_t holes = static_cast<size_t>(
      std::count_if(segment.holes.begin(), segment.holes.end(),
                    [](const Hole& hole) { return hole.reason != HoleReason::pending; }));
  std::string kind = segment.small_pool ? "small" : "large";
  if (segment.expandable) kind += "*";
  return fmt::format("  {:#014x} {:>10} {:<6} [{}] {:>10} in {}{}\n", segment.address,
                     quantity(segment.size), kind, segment_bar(segment, kCells),
                     quantity(segment.free), holes, segment.pinned ? ", pinned" : "");
}

}  // namespace

std::string segment_bar(const FragmentedSegment& segment, size_t cells) {
  std::vector<double> live(cells, 0);
  std::vector<double> pending(cells, 0);
  const double cell_bytes = static_cast<double>(segment.size) / static_cast<double>(cells);
  for (const SegmentBlock& block : segment.blocks) {
    const auto begin = static_cast<double>(block.address - segment.address);
    cover(block.pending ? pending : live, cell_bytes, begin,
          begin + static_cast<double>(block.size));
  }
  std::string bar(cells, '.');
  for (size_t i = 0; i < cells; ++i) {
    const double share = live[i] / cell_bytes;
    if (pending[i] > live[i]) {
      bar[i] = 'p';
    } else if (share > 0.999) {
      bar[i] = '#';
    } else if (share > 0.5) {
      bar[i] = '+';
    } else if (share > 0) {
      bar[i] = '-';
    }
  }
  return bar;
}

std::string segment_map(const std::vector<FragmentedSegment>& segments, size_t most) {
  std::vector<const FragmentedSegment*> shown;
  for (const FragmentedSegment& segment : segments)
    if (segment.free != 0) shown.push_back(&segment);
  const size_t full = segments.size() - shown.size();
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto* a, const auto* b) { return a->free > b->free; });
  uint64_t left_out = 0;
  for (size_t i = most; i < shown.size(); ++i) left_out += shown[i]->free;
  const size_t more = shown.size() - std::min(most, shown.size());
  shown.resize(shown.size() - more);
  std::sort(shown.begin(), shown.end(),
            [](const auto* a, const auto* b) { return a->address < b->address; });
  std::string out;
  for (const FragmentedSegment* segment : shown) out += line(*segment);
  if (more != 0)
    out += fmt::format("  {} more segments with {} free in them\n", more, quantity(left_out));
  if (full != 0) out += fmt::format("  {} segments without a hole\n", full);
  return out;
}

}  // namespace vramtrack
