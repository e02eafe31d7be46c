// The parts of an OOM report that a message and a recording have in common: verdict, arithmetic,
// advice.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_VERDICT_REPORT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_VERDICT_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/oom/advice.h"
#include "diagnosis/oom/oom_audit.h"

namespace vramtrack {

std::string verdict_text(const OomAudit& audit);
std::string advice_text(const std::vector<Advice>& advice);

// Whole bytes; a counter that ran below zero as the negative number it means.
nlohmann::ordered_json bytes_json(long double bytes);
// {"bytes": ..., "within": ...}: `within` is half the last printed digit, absent where exact.
nlohmann::ordered_json size_json(const PrintedSize& size);
void add_verdict_json(const OomAudit& audit, nlohmann::ordered_json& json);
nlohmann::ordered_json advice_json(const std::vector<Advice>& advice);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_VERDICT_REPORT_H
