// What a report says before its first number: how the numbers came about.
#ifndef VRAMTRACK_ANALYZER_REPORT_HEADING_H
#define VRAMTRACK_ANALYZER_REPORT_HEADING_H

#include <string>

#include "report/report_data.h"

namespace vramtrack {

// "measured", "simulated", "CPU" or "snapshot": nobody may take one for another.
std::string_view provenance(const Report& report);
// The first line: what kind of numbers these are.
std::string heading(const Report& report);
// Of what: the command line, or the file where that is not known.
std::string subject(const Report& report);
// The finding in a sentence or two: what ran out, or what the peak was made of.
std::string verdict(const Report& report, const DeviceReport& device);
// "Device 0, NVIDIA H100 80GB HBM3 (79.11 GiB)".
std::string device_title(const DeviceReport& device);
// "12.310 s, step 3, phase forward".
std::string when(const MomentView& view);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_HEADING_H
