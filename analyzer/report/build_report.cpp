#include "report/build_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

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

// The scene is kept while the state does not change: peaks often coincide, and what a scene has
// gathered was costly.
class SceneKeeper {
 public:
  SceneKeeper(const Recording& recording, const Timeline& timeline)
      : recording_(recording), timeline_(timeline) {}

  const Scene& at(const MemoryState& state) {
    if (!scene_ || sequence_ != state.sequence()) {
      scene_.reset(new Scene(recording_, timeline_, state));
      sequence_ = state.sequence();
    }
    return *scene_;
  }

 private:
  const Recording& recording_;
  const Timeline& timeline_;
  std::unique_ptr<Scene> scene_;
  uint64_t sequence_ = 0;
};

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
  for (const Wanted& want : wanted) moments.push_back(want.moment);

  SceneKeeper scenes(recording, report.timeline);
  visit_states(recording, moments, [&](size_t index, const MemoryState& state) {
    const Wanted& want = wanted[index];
    DeviceReport& device = report.devices[want.device];
    MomentView view = view_of(report, device, want.moment, state);
    CallSites sites(*report.definitions);
    Groups groups(options.by);
    const Scene& scene = scenes.at(state);
    state.for_each_live(device.device, [&](const Block& block) {
      const Verdict verdict = judge(block, scene);
      view.categories.add(block, verdict);
      if (want.role != Role::moment || !row_matches(verdict, options.category)) return;
      sites.add(block, verdict);
      groups.add(block, verdict, scene);
    });
    view.categories.add_cached(state, device.device);
    switch (want.role) {
      case Role::peak:
        device.peak = std::move(view);
        break;
      case Role::allocated_peak:
        device.allocated_peak = std::move(view);
        break;
      case Role::moment:
        device.moment = std::move(view);
        device.sites = sites.take();
        device.groups = groups.take();
        break;
    }
  });
  report.hints = hints_for(recording, report);
  return report;
}

}  // namespace vramtrack
