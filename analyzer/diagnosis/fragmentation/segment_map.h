// Segments as a person can see them in a terminal:
//
//   0x7f5462000000   20.0 MiB [####....######..............................]   9.0 MiB free, 2
//   holes
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_SEGMENT_MAP_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_SEGMENT_MAP_H

#include <string>
#include <vector>

#include "diagnosis/fragmentation/fragmentation.h"

namespace vramtrack {

// One cell per equal part of the segment: '#' full, '+' more than half, '-' less, '.' free,
// 'p' pending.
std::string segment_bar(const FragmentedSegment& segment, size_t cells);

// The `most` segments that hold most free bytes, in the order of their addresses, and a line on
// those that are left out.
std::string segment_map(const std::vector<FragmentedSegment>& segments, size_t most);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_SEGMENT_MAP_H
