// A growth table as JSON.
#include "report/growth_answers.h"
#include "report/growth_table.h"

namespace vramtrack {
namespace {

nlohmann::ordered_json row_json(const GrowthRow& row) {
  nlohmann::ordered_json json = {{"name", row.name}};
  json["bytes"] = nlohmann::ordered_json::array();
  for (const GrowthPoint& point : row.points)
    json["bytes"].push_back(static_cast<uint64_t>(point.bytes));
  json["law"] = {{"constant_bytes", row.law.constant},
                 {"linear_bytes", row.law.linear},
                 {"quadratic_bytes", row.law.quadratic},
                 {"shape", row.law.shape()},
                 {"worst_relative_error", row.law.worst_relative_error},
                 {"tested", row.law.tested},
                 {"explains", row.law.explains()}};
  if (row.exponent)
    json["exponent"] = {
        {"value", row.exponent->value}, {"low", row.exponent->low}, {"high", row.exponent->high}};
  else
    json["exponent"] = nullptr;
  json["absent_at"] = row.absent_at;
  json["doubling_ratios"] = row.doublings;
  return json;
}

}  // namespace

nlohmann::ordered_json growth_json(const GrowthTable& table, uint64_t capacity,
                                   const std::vector<double>& asked) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.growth/1"},
                                 {"variable", table.variable},
                                 {"device", table.device},
                                 {"simulated", table.simulated},
                                 {"files", table.paths},
                                 {"x", table.xs},
                                 {"moments", table.moments},
                                 {"activities", table.activities},
                                 {"notes", table.notes},
                                 {"allocated", row_json(table.peak)},
                                 {"in_use", row_json(table.in_use)}};
  json["outside_bytes"] = table.outside > 0 ? nlohmann::ordered_json(table.outside) : nullptr;
  json["phases"] = nlohmann::ordered_json::array();
  for (const GrowthRow& row : table.phases) json["phases"].push_back(row_json(row));
  json["categories"] = nlohmann::ordered_json::array();
  for (const GrowthRow& row : table.categories) json["categories"].push_back(row_json(row));
  json["sites"] = nlohmann::ordered_json::array();
  for (const GrowthRow& row : table.sites) json["sites"].push_back(row_json(row));
  json["crossings"] = nlohmann::ordered_json::array();
  for (const GrowthCrossing& c : table.crossings)
    json["crossings"].push_back(
        {{"overtaking", c.overtaking}, {"overtaken", c.overtaken}, {"x", c.x}});
  json["predictions"] = nlohmann::ordered_json::array();
  for (const double x : asked) {
    const auto p = predict_peak(table, x);
    nlohmann::ordered_json entry = {{"x", x}};
    if (p)
      entry.update({{"bytes", p->bytes},
                    {"low_bytes", p->low},
                    {"high_bytes", p->high},
                    {"tested", p->tested}});
    else
      entry["bytes"] = nullptr;
    json["predictions"].push_back(std::move(entry));
  }
  json["ran_out"] = nlohmann::ordered_json::array();
  for (const GrowthBound& bound : table.bounds)
    json["ran_out"].push_back(
        {{"x", bound.x}, {"at_least_bytes", bound.at_least}, {"file", bound.path}});
  if (capacity != 0) {
    const auto fit = largest_fit(table, static_cast<double>(capacity));
    const bool known = fit && !fit->unlimited;
    json["capacity_bytes"] = capacity;
    json["does_not_grow"] = fit && fit->unlimited;
    json["largest_x_that_fits"] = known ? nlohmann::ordered_json(fit->surely) : nullptr;
    json["largest_x_at_most"] = known ? nlohmann::ordered_json(fit->at_most) : nullptr;
  }
  return json;
}

}  // namespace vramtrack
