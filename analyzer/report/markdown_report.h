// A report as Markdown, for issues and notebooks.
#ifndef VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H

#include <string>

#include "report/report_data.h"

namespace vramtrack {

std::string markdown_report(const Report& report);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_MARKDOWN_REPORT_H
