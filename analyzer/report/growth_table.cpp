#include "report/growth_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "attribution/call_site.h"
#include "attribution/phase_peaks.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

// Bytes by name, of one recording.
struct Sums {
  double peak = 0;
  double in_use = 0;
  std::map<std::string, double> rows;
  std::map<std::string, double> sites;
  std::string moment;
  std::string activity;
};

// Bytes by category and line in one state.
void add_state(const Recording& recording, const Timeline& timeline, const MemoryState& state,
               int16_t device, std::map<std::string, double>& rows,
               std::map<std::string, double>& sites) {
  const Scene scene(recording, timeline, state);
  state.for_each_live(device, [&](const Block& block) {
    const auto bytes = static_cast<double>(comparable_size(block));
    rows[judge(block, scene).row()] += bytes;
    sites[call_site(recording.definitions(), block.stack)] += bytes;
  });
}

void keep_largest(std::map<std::string, double>& kept, const std::map<std::string, double>& more) {
  for (const auto& [name, bytes] : more) kept[name] = std::max(kept[name], bytes);
}

// Where no moment is asked for, each row counts where it is largest: at the peak of the whole or of
// one of its phases. A peak that moves from one phase to another would break every row's law.
Sums sums_of(const Recording& recording, int16_t device, const std::string& at) {
  const Timeline timeline = survey(recording);
  const Moment moment = find_moment(timeline, at, device);
  const StackTraitsCache traits(recording.definitions());
  std::vector<Moment> moments = {moment};
  if (at.empty())
    for (const PhasePeak& peak : find_phase_peaks(recording, device, traits))
      moments.push_back(peak.moment);
  Sums sums;
  sums.moment = moment.name;
  sums.activity =
      name_of(Evidence(recording, moment.sequence, traits).activity_at(moment.sequence));
  visit_states(recording, moments, [&](size_t index, const MemoryState& state) {
    std::map<std::string, double> rows;
    std::map<std::string, double> sites;
    add_state(recording, timeline, state, device, rows, sites);
    keep_largest(sums.rows, rows);
    keep_largest(sums.sites, sites);
    if (index != 0) return;
    sums.in_use = static_cast<double>(state.totals(device).in_use);
    sums.peak = 0;
    for (const auto& [name, bytes] : rows) sums.peak += bytes;
  });
  return sums;
}

GrowthRow make_row(std::string name, std::vector<GrowthPoint> points) {
  GrowthRow row;
  row.name = std::move(name);
  row.points = std::move(points);
  row.law = fit_growth_law(row.points);
  row.exponent = fit_growth_exponent(row.points);
  for (const GrowthPoint& from : row.points)
    for (const GrowthPoint& to : row.points)
      if (to.x == 2 * from.x && from.bytes > 0) row.doublings.push_back(to.bytes / from.bytes);
  return row;
}

std::vector<GrowthRow> rows_of(const std::vector<Sums>& all, const std::vector<double>& xs,
                               std::map<std::string, double> Sums::*member) {
  std::set<std::string> names;
  for (const Sums& sums : all)
    for (const auto& [name, bytes] : sums.*member) names.insert(name);
  std::vector<GrowthRow> rows;
  for (const std::string& name : names) {
    std::vector<GrowthPoint> points;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& map = all[i].*member;
      const auto found = map.find(name);
      points.push_back({xs[i], found == map.end() ? 0.0 : found->second});
    }
    rows.push_back(make_row(name, std::move(points)));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const GrowthRow& a, const GrowthRow& b) {
    return a.points.back().bytes > b.points.back().bytes;
  });
  return rows;
}

int16_t common_device(const std::vector<GrowthInput>& inputs) {
  int16_t device = -1;
  double most = -1;
  const Timeline timeline = survey(*inputs.back().recording);
  for (const auto& [ordinal, course] : timeline.devices) {
    if (static_cast<double>(course.most_in_use) <= most) continue;
    most = static_cast<double>(course.most_in_use);
    device = ordinal;
  }
  if (most < 0)
    throw InputError(
        fmt::format("{} holds no memory of any device", inputs.back().recording->info().path));
  return device;
}

void find_crossings(GrowthTable& table) {
  const double low = table.xs.front() / 4;
  const double high = table.xs.back() * 8;
  for (const GrowthRow& a : table.categories) {
    for (const GrowthRow& b : table.categories) {
      if (a.name == b.name || !a.law.tested || !b.law.tested) continue;
      // Crossings among small change interest nobody.
      const std::optional<double> x = crossing(a.law, b.law);
      if (!x || *x < low || *x > high || a.law.at(*x) < 0.02 * table.peak.law.at(*x)) continue;
      table.crossings.push_back({a.name, b.name, *x});
    }
  }
  std::stable_sort(table.crossings.begin(), table.crossings.end(),
                   [](const GrowthCrossing& a, const GrowthCrossing& b) { return a.x < b.x; });
}

void add_notes(GrowthTable& table) {
  if (table.xs.size() < 3)
    table.notes.emplace_back(
        "two points fit any law: no exponent and no prediction; record a third length");
  const std::set<std::string> activities(table.activities.begin(), table.activities.end());
  if (activities.size() > 1) {
    std::string where;
    for (size_t i = 0; i < table.xs.size(); ++i)
      where += fmt::format("{}{} at {:g}", i == 0 ? "" : ", ", table.activities[i], table.xs[i]);
    table.notes.push_back(fmt::format(
        "the peak moves between phases ({}): its own law holds only within one of them", where));
  }
}

}  // namespace

GrowthTable build_growth_table(std::string variable, std::vector<GrowthInput> inputs,
                               const std::string& at) {
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const GrowthInput& a, const GrowthInput& b) { return a.x < b.x; });
  if (inputs.size() < 2)
    throw InputError(
        "growth needs at least two recordings of one program; three or more to tell a law");
  GrowthTable table;
  table.variable = std::move(variable);
  table.device = common_device(inputs);
  std::vector<Sums> all;
  for (const GrowthInput& input : inputs) {
    all.push_back(sums_of(*input.recording, table.device, at));
    table.xs.push_back(input.x);
    table.paths.push_back(input.recording->info().path);
    table.moments.push_back(all.back().moment);
    table.activities.push_back(all.back().activity);
    table.simulated = table.simulated || input.recording->info().simulated;
  }
  std::vector<GrowthPoint> peak;
  std::vector<GrowthPoint> in_use;
  for (size_t i = 0; i < all.size(); ++i) {
    peak.push_back({table.xs[i], all[i].peak});
    in_use.push_back({table.xs[i], all[i].in_use});
  }
  table.peak = make_row("allocated", std::move(peak));
  table.in_use = make_row("in use", std::move(in_use));
  table.categories = rows_of(all, table.xs, &Sums::rows);
  table.sites = rows_of(all, table.xs, &Sums::sites);
  find_crossings(table);
  add_notes(table);
  return table;
}

}  // namespace vramtrack
