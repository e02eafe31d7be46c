#include "report/category_table.h"

#include <algorithm>
#include <cmath>

namespace vramtrack {

uint64_t Amount::standard_error() const {
  return static_cast<uint64_t>(std::llround(std::sqrt(variance)));
}

void CategoryTable::add(const Block& block, const Verdict& verdict) {
  // Of an estimate the rounding is scaled like the block.
  const double scale = static_cast<double>(block.bytes()) / static_cast<double>(block.size);
  const auto rounding = block.stands_for == 0
                            ? block.rounding()
                            : static_cast<uint64_t>(static_cast<double>(block.rounding()) * scale);
  Amount& category = categories[static_cast<size_t>(verdict.category)];
  category.add(block.bytes() - rounding, block.variance());
  if (!verdict.sub_row.empty())
    sub_rows[verdict.row()].add(block.bytes() - rounding, block.variance());
  if (rounding != 0) categories[static_cast<size_t>(Category::rounding)].add(rounding);
}

void CategoryTable::add_cached(const MemoryState& state, int16_t device) {
  const uint64_t cached = state.totals(device).cached();
  if (cached == 0) return;
  uint64_t fragmented = 0;
  for (const Segment& segment : state.segments(device)) {
    if (!segment.releasable()) fragmented += segment.free_bytes();
  }
  fragmented = std::min(fragmented, cached);
  const uint64_t pending = std::min(state.totals(device).pending, cached - fragmented);

  categories[static_cast<size_t>(Category::cached)].bytes += cached;
  const auto put = [this](const char* row, uint64_t bytes) {
    if (bytes != 0) sub_rows[row].bytes += bytes;
  };
  put("cached/fragmented", fragmented);
  put("cached/pending", pending);
  put("cached/releasable", cached - fragmented - pending);
}

uint64_t CategoryTable::sum() const {
  uint64_t sum = 0;
  for (const Amount& amount : categories) sum += amount.bytes;
  return sum;
}

}  // namespace vramtrack
