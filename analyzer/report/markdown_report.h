// A report as Markdown, for issues and notebooks.
#ifndef VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H

#include <string>
#include <string_view>

#include "report/report_data.h"

namespace vramtrack {

std::string markdown_report(const Report& report);

// Text in a table cell: a pipe would end the cell, angle brackets of C++ would be taken for HTML.
std::string markdown_cell(std::string_view text);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H
