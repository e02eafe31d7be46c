// Pairs two series of times, both ascending, of which one may lack members.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_ALIGNMENT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_ALIGNMENT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vramtrack {

inline constexpr size_t kUnpaired = SIZE_MAX;

// For each member of `fewer` the index of its partner in `more`. All are paired, in order, with the
// least sum of distances.
std::vector<size_t> align(std::span<const uint64_t> fewer, std::span<const uint64_t> more);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_WITNESS_ALIGNMENT_H
