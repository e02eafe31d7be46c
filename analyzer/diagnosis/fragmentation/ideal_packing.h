// How much the blocks of a recording would need if somebody had known all lifetimes in advance.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_IDEAL_PACKING_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_IDEAL_PACKING_H

#include <cstdint>

#include "trace/recording.h"

namespace vramtrack {

struct IdealPacking {
  uint64_t items = 0;          // blocks, over the whole recording
  uint64_t lower_bound = 0;    // the most bytes alive at once
  uint64_t best_found = 0;     // height of the best packing found
  uint64_t reserved_peak = 0;  // what the allocator reserved at most
  // Reserved beyond the best packing found, as a share of that packing.
  [[nodiscard]] double excess() const {
    return best_found == 0
               ? 0
               : static_cast<double>(reserved_peak) / static_cast<double>(best_found) - 1;
  }
};

IdealPacking ideal_packing(const Recording& recording, int16_t device, uint64_t reserved_peak);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_IDEAL_PACKING_H
