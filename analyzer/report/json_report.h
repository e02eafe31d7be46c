// Reports as JSON; docs/json.md describes the schemas. Sizes are bytes, times are seconds since the
// recording began.
#ifndef VRAMTRACK_ANALYZER_REPORT_JSON_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_JSON_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "report/report_data.h"

namespace vramtrack {

nlohmann::ordered_json json_report(const Report& report);

// Parts that other commands' JSON shares.
nlohmann::ordered_json json_of(const Frame& frame);
nlohmann::ordered_json json_frames(const Definitions& definitions, StackId stack);
nlohmann::ordered_json json_of(const RecordingInfo& info);  // file, format, command, ...

// The text of a document; bytes that are no UTF-8 are replaced.
std::string dump(const nlohmann::ordered_json& document);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_JSON_REPORT_H
