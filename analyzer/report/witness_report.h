// What `vramtrack audit` prints.
#ifndef VRAMTRACK_ANALYZER_REPORT_WITNESS_REPORT_H
#define VRAMTRACK_ANALYZER_REPORT_WITNESS_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

#include "diagnosis/witness/witness_audit.h"

namespace vramtrack {

std::string text_audit(const Recording& recording, const WitnessAudit& audit, size_t top);
nlohmann::ordered_json json_audit(const Recording& recording, const WitnessAudit& audit);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_WITNESS_REPORT_H
