// The most that each category and each line of one recording ever held, each at its own instant.
// At the instant of the whole's peak a row may be half built or half gone, and which half changes
// with length: only a row's own highest value follows a law.
//
// What a block is can be judged at a moment only, at a price of a pass over the recording. So
// blocks are judged at some moments, and the others are what blocks of their kind are: made by the
// same stack, of the same size.
#ifndef VRAMTRACK_ANALYZER_REPORT_ROW_PEAKS_H
#define VRAMTRACK_ANALYZER_REPORT_ROW_PEAKS_H

#include <map>
#include <string>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

struct RowPeaks {
  std::map<std::string, double> rows;   // "activations/logits" apart from "activations"
  std::map<std::string, double> sites;  // by the user's line
};

// `moments`: judged first, those at which most of the memory is live.
RowPeaks row_peaks(const Recording& recording, const Timeline& timeline, int16_t device,
                   const std::vector<Moment>& moments);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_ROW_PEAKS_H
