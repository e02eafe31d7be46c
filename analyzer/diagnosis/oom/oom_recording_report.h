// How the diagnosis of a recording looks: for people, and as JSON.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_RECORDING_REPORT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_RECORDING_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "diagnosis/oom/recording_diagnosis.h"

namespace vramtrack {

std::string text_report(const RecordingInfo& info, const RecordingDiagnosis& diagnosis, size_t top);
nlohmann::ordered_json json_report(const RecordingInfo& info, const RecordingDiagnosis& diagnosis);

// The holders of a site.
nlohmann::ordered_json json_of(const std::vector<SiteHolder>& holders);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_RECORDING_REPORT_H
