#include "report/build_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "report/hints.h"

namespace vramtrack {
namespace {

enum class Role { peak, allocated_peak, moment };

struct Wanted {
  Moment moment;
  size_t device;  // index in Report::devices
  Role role;
};

std::vector<DeviceReport> devices_of(const RecordingInfo& info, const Timeline& timeline) {
  std::vector<DeviceReport> used;
  std::vector<DeviceReport> idle;
  for (const auto& [ordinal, course] : timeline.devices) {
    DeviceReport device{.device = ordinal, .course = course};
    for (const DeviceInfo& known : info.devices) {
      if (known.ordinal != ordinal) continue;
      device.name = known.name;
      device.total_bytes = known.total_bytes;
    }
    const bool holds = course.most_in_use != 0 || !course.ooms.empty();
    if (!holds && ordinal < 0) continue;
    (holds ? used : idle).push_back(std::move(device));
  }
  return used.empty() ? idle : used;
}

std::vector<Wanted> moments_for(const Report& report) {
  std::vector<Wanted> wanted;
  for (size_t i = 0; i < report.devices.size(); ++i) {
    const int16_t device = report.devices[i].device;
    wanted.push_back({find_moment(report.timeline, "peak", device), i, Role::peak});
    wanted.push_back(
        {find_moment(report.timeline, "allocated-peak", device), i, Role::allocated_peak});
    // A job ran out of memory on one device; the others have no such moment and show their peak.
    const bool no_oom = report.options.at == "oom" && report.devices[i].course.ooms.empty() &&
                        std::any_of(report.devices.begin(), report.devices.end(),
                                    [](const DeviceReport& d) { return !d.course.ooms.empty(); });
    wanted.push_back(
        {find_moment(report.timeline, no_oom ? "" : report.options.at, device), i, Role::moment});
  }
  return wanted;
}

// The live blocks of a device at a moment and what they are. Peaks often coincide: then several
// moments share one of these.
struct Judged {
  uint64_t sequence = 0;
  int16_t device = 0;
  std::vector<std::pair<Block, Verdict>> blocks;
  std::unique_ptr<const Scene> scene;
};

Judged& judged_at(std::vector<std::unique_ptr<Judged>>& all, const MemoryState& state,
                  int16_t device) {
  for (const auto& known : all)
    if (known->sequence == state.sequence() && known->device == device) return *known;
  Judged& judged = *all.emplace_back(std::make_unique<Judged>());
  judged.sequence = state.sequence();
  judged.device = device;
  state.for_each_live(device,
                      [&](const Block& block) { judged.blocks.emplace_back(block, Verdict()); });
  return judged;
}

MomentView view_of(const Report& report, const DeviceReport& device, const Moment& moment,
                   const MemoryState& state) {
  MomentView view{.moment = moment,
                  .phase = std::string(report.definitions->string(state.phase())),
                  .totals = state.totals(device.device),
                  .outside = state.outside(device.device),
                  .host = state.host()};
  view.allocated = report.timeline.allocated(device.device, view.totals);
  view.moment.step = state.step();
  if (moment.by_time) view.moment.time_ns = std::min(moment.time_ns, report.timeline.end.time_ns);
  return view;
}

// By call site, and by what was asked for.
void group_blocks(const Report& report, DeviceReport& device, const Judged& judged) {
  CallSites sites(*report.definitions);
  Groups groups(report.options.by);
  for (const auto& [block, verdict] : judged.blocks) {
    if (!row_matches(verdict, report.options.category)) continue;
    sites.add(block, verdict);
    groups.add(block, verdict, *judged.scene);
  }
  device.sites = sites.take();
  device.groups = groups.take();
  if (report.options.by == Grouping::module) device.modules = module_trees(device.groups);
}

void look_at_oom_of(const Recording& recording, DeviceReport& device) {
  if (device.course.ooms.empty()) return;
  device.oom = look_at_oom(recording, device.device);
  if (device.moment.moment.sequence != device.oom->moment.sequence) return;
  for (CallSite& site : device.sites) {
    for (const SiteShare& share : device.oom->sites) {
      if (share.site == site.name) site.holders = share.holders;
    }
  }
}

}  // namespace

bool row_matches(const Verdict& verdict, const std::string& category) {
  return category.empty() || category == name_of(verdict.category) || category == verdict.row();
}

Report build_report(const Recording& recording, const ReportOptions& options) {
  Report report{.info = recording.info(),
                .timeline = survey(recording),
                .options = options,
                .definitions = &recording.definitions()};
  report.devices = devices_of(report.info, report.timeline);
  const std::vector<Wanted> wanted = moments_for(report);
  std::vector<Moment> moments;
  moments.reserve(wanted.size());
  for (const Wanted& want : wanted) moments.push_back(want.moment);

  // What becomes of a block decides what it is, so blocks are kept and judged after the pass.
  const StackTraitsCache traits(*report.definitions);
  Evidence evidence(traits);
  std::vector<MomentView> views(wanted.size());
  std::vector<const Judged*> at(wanted.size());
  std::vector<std::unique_ptr<Judged>> judged;
  visit_states(
      recording, moments,
      [&](size_t index, const MemoryState& state) {
        const DeviceReport& device = report.devices[wanted[index].device];
        evidence.watch(state);
        views[index] = view_of(report, device, wanted[index].moment, state);
        views[index].categories.add_cached(state, device.device);
        at[index] = &judged_at(judged, state, device.device);
      },
      [&](const Event& event) { evidence.observe(event); });
  evidence.finish();
  for (const auto& moment : judged) {
    moment->scene =
        std::make_unique<Scene>(recording, report.timeline, moment->sequence, traits, evidence);
    for (auto& [block, verdict] : moment->blocks) verdict = judge(block, *moment->scene);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (const auto& [block, verdict] : at[i]->blocks) views[i].categories.add(block, verdict);
    DeviceReport& device = report.devices[wanted[i].device];
    switch (wanted[i].role) {
      case Role::peak:
        device.peak = std::move(views[i]);
        break;
      case Role::allocated_peak:
        device.allocated_peak = std::move(views[i]);
        break;
      case Role::moment:
        device.moment = std::move(views[i]);
        group_blocks(report, device, *at[i]);
        break;
    }
  }
  for (DeviceReport& device : report.devices) look_at_oom_of(recording, device);
  report.hints = hints_for(report);
  return report;
}

}  // namespace vramtrack
