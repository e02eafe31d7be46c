// The tables of `report --by module|phase|step|kernel|category`: each row with the call sites that
// hold most of it.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROUP_TABLE_H
#define VRAMTRACK_ANALYZER_REPORT_GROUP_TABLE_H

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "report/report_data.h"
#include "wording/units.h"

namespace vramtrack {

// The call sites shown below one row; empty where rows are not expanded.
std::span<const CallSite> shown_sites(const std::vector<CallSite>& sites,
                                      const ReportOptions& options);
// Of a category's own row or of a sub-row, at the moment asked for.
std::span<const CallSite> sites_of_row(const DeviceReport& device, const std::string& row,
                                       const ReportOptions& options);

// For --by category and site: nothing, their tables are part of every report.
std::string groups_text(const Report& report, const DeviceReport& device, const Unit& unit);
std::string groups_markdown(const Report& report, const DeviceReport& device, const Unit& unit);

// Fields to add to a device: `groups` and, for --by module, `modules` and `modules_summed`.
nlohmann::ordered_json groups_json(const Report& report, const DeviceReport& device);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROUP_TABLE_H
