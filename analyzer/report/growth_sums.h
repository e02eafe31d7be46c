// What one recording holds by category, line and phase, for a row of points in a growth table.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROWTH_SUMS_H
#define VRAMTRACK_ANALYZER_REPORT_GROWTH_SUMS_H

#include <map>
#include <string>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

// The requested size counts where it is known, since rounding is not growth.
struct GrowthSums {
  double x = 0;
  double peak = 0;    // allocated at the moment
  double in_use = 0;  // most that the driver handed out
  std::map<std::string, double> rows;
  std::map<std::string, double> sites;
  std::map<std::string, double> phases;    // allocated at the peak of each phase
  std::map<std::string, uint64_t> blocks;  // live at once by line, the most at any of the moments
  std::string path;
  std::string moment;
  std::string activity;  // what the job was doing then
  double outside = 0;    // measured beside the ledger: the context; 0 unknown
  bool ran_out = false;  // the moment is an OOM: the job would have needed more
  double missing = 0;    // what the failed request asked for
};

// Where no moment is asked for, each row and line counts at its own highest, whenever that is, and
// the total at its peak and at the peak of each phase: a peak that moves from one phase to another
// would break every row's law.
GrowthSums growth_sums(const Recording& recording, int16_t device, const std::string& at);

// The same of given moments: the first is the one for the total, unless another holds more.
GrowthSums growth_sums_at(const Recording& recording, const Timeline& timeline, int16_t device,
                          const std::vector<Moment>& moments);

// The one that holds most of the driver's memory. Throws InputError where none holds anything.
int16_t growth_device(const Recording& recording);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROWTH_SUMS_H
