// How the diagnosis of a message looks: for people, and as JSON.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_TEXT_REPORT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_TEXT_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "diagnosis/oom/text_diagnosis.h"

namespace vramtrack {

std::string text_report(const TextDiagnosis& diagnosis);
nlohmann::ordered_json json_report(const TextDiagnosis& diagnosis);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_TEXT_REPORT_H
