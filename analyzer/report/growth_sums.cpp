#include "report/growth_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/call_site.h"
#include "attribution/phase_peaks.h"
#include "attribution/rules.h"
#include "report/row_peaks.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

using Rows = std::map<std::string, double>;
using Counts = std::map<std::string, uint64_t>;

double add_state(const Recording& recording, const Timeline& timeline, const MemoryState& state,
                 int16_t device, Rows& rows, Rows& sites, Counts& blocks) {
  const Scene scene(recording, timeline, state);
  double sum = 0;
  state.for_each_live(device, [&](const Block& block) {
    const auto bytes = static_cast<double>(comparable_size(block));
    rows[judge(block, scene).row()] += bytes;
    const std::string site = call_site(recording.definitions(), block.stack);
    sites[site] += bytes;
    ++blocks[site];
    sum += bytes;
  });
  return sum;
}

template <class Value>
void keep_largest(std::map<std::string, Value>& kept, const std::map<std::string, Value>& more) {
  for (const auto& [name, value] : more) {
    Value& most = kept[name];
    most = std::max(most, value);
  }
}

double outside_of(const MemoryState& state, int16_t device) {
  const Outside outside = state.outside(device);
  return outside.measured ? static_cast<double>(outside.context + outside.last.libraries) : 0;
}

// "forward" of "forward-peak".
std::string phase_of(const Moment& moment) {
  return moment.name.substr(0, moment.name.rfind("-peak"));
}

}  // namespace

GrowthSums growth_sums_at(const Recording& recording, const Timeline& timeline, int16_t device,
                          const std::vector<Moment>& moments) {
  GrowthSums sums;
  sums.path = recording.info().path;
  sums.moment = moments.front().name;
  visit_states(recording, moments, [&](size_t index, const MemoryState& state) {
    Rows rows;
    Rows sites;
    Counts blocks;
    const double sum = add_state(recording, timeline, state, device, rows, sites, blocks);
    keep_largest(sums.blocks, blocks);
    keep_largest(sums.rows, rows);
    keep_largest(sums.sites, sites);
    sums.outside = std::max(sums.outside, outside_of(state, device));
    sums.in_use = std::max(sums.in_use, static_cast<double>(state.totals(device).in_use));
    if (index == 0) {
      sums.peak = sum;
    } else {
      double& most = sums.phases[phase_of(moments[index])];
      most = std::max(most, sum);
    }
  });
  return sums;
}

GrowthSums growth_sums(const Recording& recording, int16_t device, const std::string& at) {
  const Timeline timeline = survey(recording);
  const Moment moment = find_moment(timeline, at, device);
  const StackTraitsCache traits(recording.definitions());
  std::vector<Moment> moments = {moment};
  if (at.empty())
    for (const PhasePeak& peak : find_phase_peaks(recording, device, traits))
      moments.push_back(peak.moment);
  GrowthSums sums = growth_sums_at(recording, timeline, device, moments);
  if (at.empty()) {
    RowPeaks peaks = row_peaks(recording, timeline, device, moments);
    sums.rows = std::move(peaks.rows);
    sums.sites = std::move(peaks.sites);
  }
  Evidence evidence(traits);
  recording.for_each([&](const Event& event) {
    evidence.observe(event);
    return true;
  });
  sums.activity = name_of(evidence.activity_at(moment.sequence));
  const DeviceTimeline* course = timeline.device(device);
  if (course == nullptr) return sums;
  if (at.empty()) sums.in_use = static_cast<double>(course->most_in_use);
  if (!course->ooms.empty() && course->ooms.back().moment.sequence == moment.sequence) {
    const OomEvent& oom = course->ooms.back();
    sums.ran_out = true;
    sums.missing = static_cast<double>(oom.requested != 0 ? oom.requested : oom.size);
  }
  return sums;
}

int16_t growth_device(const Recording& recording) {
  int16_t device = -1;
  uint64_t most = 0;
  const Timeline timeline = survey(recording);
  for (const auto& [ordinal, course] : timeline.devices) {
    const uint64_t held = std::max(course.most_in_use, course.most_allocated);
    if (held <= most) continue;
    most = held;
    device = ordinal;
  }
  if (most == 0)
    throw InputError(fmt::format("{} holds no memory of any device", recording.info().path));
  return device;
}

}  // namespace vramtrack
