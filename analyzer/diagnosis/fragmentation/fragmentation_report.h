// How the fragmentation of a device looks: for people, and as JSON.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_REPORT_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_REPORT_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/fragmentation/fragmentation.h"
#include "diagnosis/fragmentation/ideal_packing.h"
#include "replay/allocator_prediction.h"

namespace vramtrack {

struct FragmentationReport {
  Fragmentation now;
  uint64_t reserved_peak = 0;
  std::string settings;  // in force
  // Both only where allocations were recorded.
  std::optional<DriverCounts> replay;
  bool replay_exact = false;
  AllocatorSettings replayed_settings;
  // Empty where the replay under the settings in force does not arrive at what was recorded.
  std::vector<Prediction> predictions;  // most saved first
  std::optional<IdealPacking> ideal;
};

FragmentationReport report_fragmentation(const Recording& recording, const Timeline& timeline,
                                         int16_t device, const std::string& at);

std::string text_report(const RecordingInfo& info, const FragmentationReport& report, size_t top);
nlohmann::ordered_json json_report(const FragmentationReport& report,
                                   const Definitions& definitions);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_FRAGMENTATION_FRAGMENTATION_REPORT_H
