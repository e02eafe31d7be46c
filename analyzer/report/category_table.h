// The bytes of one device at one moment, by category. The rows sum to what the driver handed out,
// exactly: whatever no rule explains is in `other`, what nobody holds is in `cached`.
#ifndef VRAMTRACK_ANALYZER_REPORT_CATEGORY_TABLE_H
#define VRAMTRACK_ANALYZER_REPORT_CATEGORY_TABLE_H

#include <array>
#include <map>
#include <string>

#include "attribution/rules.h"

namespace vramtrack {

struct Amount {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  double variance = 0;  // of an estimate; 0: the bytes are exact

  void add(uint64_t more, double more_variance = 0) {
    bytes += more;
    variance += more_variance;
    ++blocks;
  }
  void add(const Amount& more) {
    bytes += more.bytes;
    variance += more.variance;
    blocks += more.blocks;
  }
  [[nodiscard]] uint64_t standard_error() const;
};

struct CategoryTable {
  std::array<Amount, kCategoryCount> categories{};
  std::map<std::string, Amount> sub_rows;  // "activations/logits"; part of their category

  void add(const Block& block, const Verdict& verdict);
  // Splits what is cached into what could be given back, what waits and what is stuck.
  void add_cached(const MemoryState& state, int16_t device);

  [[nodiscard]] const Amount& of(Category category) const {
    return categories[static_cast<size_t>(category)];
  }
  [[nodiscard]] uint64_t sum() const;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_CATEGORY_TABLE_H
