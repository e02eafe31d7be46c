// A report for a terminal: the verdict first, at most 92 columns.
#ifndef VRAMTRACK_ANALYZER_REPORT_TEXT_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_TEXT_REPORT_H

#include <string>
#include <string_view>

#include "report/report_data.h"

namespace vramtrack {

// "allocated": what a maximum of before a ring is of.
std::string_view name_of(RingPeak what);

std::string text_report(const Report& report);

// One row of a category table, largest category first and each followed by its sub-rows.
struct TableRow {
  std::string name;
  Amount amount;
  bool sub_row = false;
};
std::vector<TableRow> rows_of(const CategoryTable& table);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_TEXT_REPORT_H
