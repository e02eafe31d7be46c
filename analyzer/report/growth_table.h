// How each category, sub-row and line of one program grows with a variable: several recordings, one
// law for each row, and what follows from the laws.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H
#define VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/growth/growth_law.h"
#include "report/growth_sums.h"

namespace vramtrack {

struct GrowthRow {
  std::string name;
  std::vector<GrowthPoint> points;  // one per recording, in order of x
  // Of the points at which the row is there at all: a row that is only sometimes there (another
  // kernel from some length on) says nothing about growth where it is not.
  GrowthLaw law;
  std::optional<GrowthExponent> exponent;  // empty where no law explains the points
  std::vector<double> doublings;           // y(2x)/y(x) for each pair of points whose x doubles
  std::vector<double> absent_at;           // x of the points without a byte
};

struct GrowthCrossing {
  std::string overtaking;
  std::string overtaken;
  double x = 0;
};

// A recording that ran out of memory: there the job needs at least so much. No law is fitted to it.
struct GrowthBound {
  double x = 0;
  double at_least = 0;  // allocated, and what the failed request asked for
  std::string path;
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
  GrowthRow in_use;                     // most that the driver handed out
  std::vector<GrowthRow> phases;        // allocated bytes at the peak of each phase
  std::vector<GrowthRow> categories;    // sub-rows apart from their category
  std::vector<GrowthRow> sites;
  std::vector<GrowthCrossing> crossings;  // within 1/4 of the least to 8 times the greatest x
  std::vector<GrowthBound> bounds;
  double outside = 0;  // measured beside the allocations: the context; 0 unknown
  std::vector<std::string> notes;
};

struct GrowthInput {
  double x = 0;
  const Recording* recording = nullptr;
  bool ran_out = false;  // known from elsewhere; an OOM in the recording says it as well
};

// With `at` empty the total is taken at the allocated peak, and each row at its own highest. Throws
// InputError for fewer than two recordings that can be compared, or where a device appears in none.
GrowthTable build_growth_table(std::string variable, std::vector<GrowthInput> inputs,
                               const std::string& at);

// From sums that are there already, at least two, in order of x.
GrowthTable growth_table_of(std::string variable, int16_t device,
                            const std::vector<GrowthSums>& sums);

std::string growth_text(const GrowthTable& table, uint64_t capacity,
                        const std::vector<double>& asked, size_t top);
nlohmann::ordered_json growth_json(const GrowthTable& table, uint64_t capacity,
                                   const std::vector<double>& asked);  // vramtrack.growth/1

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROWTH_TABLE_H
