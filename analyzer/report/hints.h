// The cheap checks of other commands, one line each, with the command that says more.
#ifndef VRAMTRACK_ANALYZER_REPORT_HINTS_H
#define VRAMTRACK_ANALYZER_REPORT_HINTS_H

#include <vector>

#include "report/report_data.h"

namespace vramtrack {

std::vector<Hint> hints_for(const Report& report);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_HINTS_H
