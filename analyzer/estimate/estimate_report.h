// How an estimate looks: for people, and as JSON.
#ifndef VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_REPORT_H
#define VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_REPORT_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "estimate/estimate.h"

namespace vramtrack {

// What a recording holds per category, for a comparison.
struct Measured {
  std::map<std::string, Bytes> categories;  // rows as `report` names them
  Bytes peak = 0;                           // of allocated memory
  std::string of;                           // the file
};

struct EstimateRequest {
  ModelShape shape;
  Workload work;
  std::optional<Bytes> card;
  std::optional<Measured> measured;
};

std::string estimate_text(const EstimateRequest& request);
nlohmann::ordered_json estimate_json(const EstimateRequest& request);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ESTIMATE_ESTIMATE_REPORT_H
