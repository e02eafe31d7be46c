// Builds a report in two passes over the recording: one to find the moments, one to look at them.
#ifndef VRAMTRACK_ANALYZER_REPORT_BUILD_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_BUILD_REPORT_H

#include "report/report_data.h"

namespace vramtrack {

// The recording must outlive the report. Throws InputError where it has no such moment.
Report build_report(const Recording& recording, const ReportOptions& options);

// Whether a verdict belongs to what `--category` asks for.
bool row_matches(const Verdict& verdict, const std::string& category);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_BUILD_REPORT_H
