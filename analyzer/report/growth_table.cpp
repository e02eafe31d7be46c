#include "report/growth_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

GrowthRow make_row(std::string name, std::vector<GrowthPoint> points) {
  GrowthRow row;
  row.name = std::move(name);
  row.points = std::move(points);
  std::vector<GrowthPoint> present;
  for (const GrowthPoint& point : row.points) {
    if (point.bytes > 0) {
      present.push_back(point);
    } else {
      row.absent_at.push_back(point.x);
    }
  }
  if (present.empty()) {
    present = row.points;
    row.absent_at.clear();
  }
  row.law = fit_growth_law(present);
  // A row that comes and goes needs three points of its own to be believed.
  if (!row.absent_at.empty() && present.size() < 3) row.law.tested = false;
  if (row.law.explains()) row.exponent = fit_growth_exponent(present);
  for (const GrowthPoint& from : row.points)
    for (const GrowthPoint& to : row.points)
      if (to.x == 2 * from.x && from.bytes > 0) row.doublings.push_back(to.bytes / from.bytes);
  return row;
}

std::vector<GrowthRow> rows_of(const std::vector<GrowthSums>& all,
                               std::map<std::string, double> GrowthSums::*member) {
  std::set<std::string> names;
  for (const GrowthSums& sums : all)
    for (const auto& [name, bytes] : sums.*member) names.insert(name);
  std::vector<GrowthRow> rows;
  for (const std::string& name : names) {
    std::vector<GrowthPoint> points;
    for (const GrowthSums& sums : all) {
      const auto& map = sums.*member;
      const auto found = map.find(name);
      points.push_back({sums.x, found == map.end() ? 0.0 : found->second});
    }
    rows.push_back(make_row(name, std::move(points)));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const GrowthRow& a, const GrowthRow& b) {
    return a.points.back().bytes > b.points.back().bytes;
  });
  return rows;
}

void find_crossings(GrowthTable& table) {
  const double low = table.xs.front() / 4;
  const double high = table.xs.back() * 8;
  for (const GrowthRow& a : table.categories) {
    for (const GrowthRow& b : table.categories) {
      if (a.name == b.name || !a.law.explains() || !b.law.explains()) continue;
      // Crossings among small change interest nobody.
      const std::optional<double> x = crossing(a.law, b.law);
      if (!x || *x < low || *x > high || a.law.at(*x) < 0.02 * table.peak.law.at(*x)) continue;
      table.crossings.push_back({a.name, b.name, *x});
    }
  }
  std::stable_sort(table.crossings.begin(), table.crossings.end(),
                   [](const GrowthCrossing& a, const GrowthCrossing& b) { return a.x < b.x; });
}

// A line that holds far more blocks than at the value before, and not in step with the variable:
// the runs did different things, and a law over both says nothing.
void find_changes(GrowthTable& table, const std::vector<GrowthSums>& sums) {
  std::string worst;
  double most = 0;
  for (size_t i = 1; i < sums.size(); ++i) {
    for (const auto& [site, after] : sums[i].blocks) {
      const auto found = sums[i - 1].blocks.find(site);
      const auto bytes = sums[i].sites.find(site);
      if (found == sums[i - 1].blocks.end() || bytes == sums[i].sites.end()) continue;
      const double ratio = static_cast<double>(after) / static_cast<double>(found->second);
      const double step = sums[i].x / sums[i - 1].x;
      const bool jumps =
          std::max(ratio, 1 / ratio) >= 2 && std::max(ratio, step) > 1.2 * std::min(ratio, step);
      if (!jumps || bytes->second < std::max(0.05 * sums[i].peak, most)) continue;
      if (std::max(after, found->second) < 16) continue;
      most = bytes->second;
      worst = fmt::format("the runs may not be alike: {} holds {} blocks at {:g} and {} at {:g}",
                          site, found->second, sums[i - 1].x, after, sums[i].x);
    }
  }
  if (!worst.empty()) table.notes.push_back(worst);
}

size_t different(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size();
}

void add_notes(GrowthTable& table) {
  if (different(table.xs) < 3)
    table.notes.emplace_back(
        "two points fit any law: no exponent and no prediction; record a third length");
  const std::set<std::string> activities(table.activities.begin(), table.activities.end());
  if (activities.size() > 1) {
    std::string where;
    for (size_t i = 0; i < table.xs.size(); ++i)
      if (i == 0 || table.activities[i] != table.activities[i - 1])
        where +=
            fmt::format("{}{} from {:g}", i == 0 ? "" : ", ", table.activities[i], table.xs[i]);
    table.notes.push_back(fmt::format("the peak moves between phases: {}", where));
  }
}

}  // namespace

GrowthTable growth_table_of(std::string variable, int16_t device,
                            const std::vector<GrowthSums>& sums) {
  GrowthTable table;
  table.variable = std::move(variable);
  table.device = device;
  std::vector<GrowthPoint> peak;
  std::vector<GrowthPoint> in_use;
  for (const GrowthSums& one : sums) {
    table.xs.push_back(one.x);
    table.paths.push_back(one.path);
    table.moments.push_back(one.moment);
    table.activities.push_back(one.activity);
    table.outside = std::max(table.outside, one.outside);
    peak.push_back({one.x, one.peak});
    in_use.push_back({one.x, one.in_use});
  }
  table.peak = make_row("allocated", std::move(peak));
  table.in_use = make_row("in use, highest", std::move(in_use));
  table.phases = rows_of(sums, &GrowthSums::phases);
  table.categories = rows_of(sums, &GrowthSums::rows);
  table.sites = rows_of(sums, &GrowthSums::sites);
  find_crossings(table);
  add_notes(table);
  find_changes(table, sums);
  return table;
}

GrowthTable build_growth_table(std::string variable, std::vector<GrowthInput> inputs,
                               const std::string& at) {
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const GrowthInput& a, const GrowthInput& b) { return a.x < b.x; });
  if (inputs.size() < 2)
    throw InputError(
        "growth needs at least two recordings of one program; three or more to tell a law");
  const int16_t device = growth_device(*inputs.back().recording);
  std::vector<GrowthSums> fitted;
  std::vector<GrowthBound> bounds;
  bool simulated = false;
  for (const GrowthInput& input : inputs) {
    GrowthSums sums = growth_sums(*input.recording, device, at);
    sums.x = input.x;
    simulated = simulated || input.recording->info().simulated;
    if ((sums.ran_out || input.ran_out) && at.empty())
      bounds.push_back({sums.x, sums.peak + sums.missing, sums.path});
    else
      fitted.push_back(std::move(sums));
  }
  if (fitted.size() < 2)
    throw InputError(
        fmt::format("{} of the {} recordings ran out of memory: growth needs two that did not "
                    "(--at oom compares the failures)",
                    bounds.size(), inputs.size()));
  GrowthTable table = growth_table_of(std::move(variable), device, fitted);
  table.simulated = simulated;
  table.bounds = std::move(bounds);
  for (const GrowthBound& bound : table.bounds)
    table.notes.push_back(
        fmt::format("at {} = {:g} it ran out of memory: a lower bound, left out of the laws",
                    table.variable, bound.x));
  return table;
}

}  // namespace vramtrack
