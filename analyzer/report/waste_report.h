// What `vramtrack waste` prints.
#ifndef VRAMTRACK_ANALYZER_REPORT_WASTE_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_WASTE_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "diagnosis/waste/waste.h"

namespace vramtrack {

std::string waste_text(const WasteReport& report, const Recording& recording, size_t top);
nlohmann::ordered_json waste_json(const WasteReport& report, const Recording& recording);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_WASTE_REPORT_H
