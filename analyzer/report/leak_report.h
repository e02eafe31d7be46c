// A leak report as text and as JSON.
#ifndef VRAMTRACK_ANALYZER_REPORT_LEAK_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_LEAK_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "diagnosis/leaks/leak_finder.h"

namespace vramtrack {

std::string leak_text(const LeakReport& report, const Recording& recording, size_t top);
// All that the helper said of who holds what, by site: `leaks --holders`.
std::string holders_text(const LeakReport& report, const Recording& recording);
nlohmann::ordered_json holders_json(const LeakReport& report, const Recording& recording);
nlohmann::ordered_json leak_json(const LeakReport& report,
                                 const Recording& recording);  // vramtrack.leaks/1

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_LEAK_REPORT_H
