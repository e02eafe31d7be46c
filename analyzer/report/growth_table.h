// How each category, sub-row and line of one program grows with a variable: several recordings, one
// law for each row, and what follows from the laws.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H
#define VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/growth/growth_law.h"
#include "report/report_data.h"

namespace vramtrack {

struct GrowthRow {
  std::string name;
  std::vector<GrowthPoint> points;  // one per recording, in order of x
  GrowthLaw law;
  std::optional<GrowthExponent> exponent;
  std::vector<double> doublings;  // y(2x)/y(x) for each pair of points whose x doubles
};

struct GrowthCrossing {
  std::string overtaking;
  std::string overtaken;
  double x = 0;
};

struct GrowthTable {
  std::string variable;  // "seq"
  int16_t device = 0;
  bool simulated = false;
  std::vector<std::string> paths;
  std::vector<double> xs;
  std::vector<std::string> moments;     // which moment each was looked at
  std::vector<std::string> activities;  // what the job was doing then
  GrowthRow peak;                       // allocated bytes at the moment
  GrowthRow in_use;                     // what the driver handed out
  std::vector<GrowthRow> categories;    // sub-rows apart from their category
  std::vector<GrowthRow> sites;
  std::vector<GrowthCrossing> crossings;  // within 1/4 of the least to 8 times the greatest x
  std::vector<std::string> notes;
};

struct GrowthInput {
  double x = 0;
  const Recording* recording = nullptr;
};

// The requested size counts where it is known, since rounding is not growth. With `at` empty the
// total is taken at the allocated peak (or the OOM), and each row at whichever of that and the
// peaks of the phases it is largest. Throws InputError for fewer than two recordings or where a
// device appears in none.
GrowthTable build_growth_table(std::string variable, std::vector<GrowthInput> inputs,
                               const std::string& at);

// `capacity` in bytes, 0: unknown. `asked`: values of x to predict.
std::string growth_text(const GrowthTable& table, uint64_t capacity,
                        const std::vector<double>& asked, size_t top);
nlohmann::ordered_json growth_json(const GrowthTable& table, uint64_t capacity,
                                   const std::vector<double>& asked);  // vramtrack.growth/1

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H
