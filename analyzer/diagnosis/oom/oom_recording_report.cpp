#include "diagnosis/oom/oom_recording_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnosis/oom/verdict_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr size_t kStackLines = 8;
constexpr size_t kSitesInJson = 1000;

std::string row(const char* label, const std::string& value, const std::string& note = {}) {
  return fmt::format("  {:<28}{:>14}{}{}\n", label, value, note.empty() ? "" : "   ", note);
}

std::string heading(const RecordingInfo& info, const OomScene& scene) {
  std::string out;
  if (info.simulated) out += "SIMULATED: ran on the simulated GPU\n";
  if (!scene.found) {
    return out + paragraph("", fmt::format(
                                   "no out-of-memory event on GPU {}; what follows is the peak of "
                                   "allocated memory, at {:.3f} s",
                                   scene.device, static_cast<double>(scene.moment.time_ns) / 1e9));
  }
  std::string line = fmt::format("out of memory on GPU {} at {:.3f} s", scene.device,
                                 static_cast<double>(scene.moment.time_ns) / 1e9);
  if (scene.moment.step != kNoStep) line += fmt::format(", step {}", scene.moment.step);
  out += line + "\n";
  out += paragraph("  asked for ",
                   fmt::format("{} ({} bytes{}) at {}", quantity(scene.ask), scene.ask,
                               scene.requested != 0 && scene.requested != scene.ask
                                   ? fmt::format(", {} by the program", scene.requested)
                                   : "",
                               scene.request_site));
  for (size_t i = 0; i < std::min(kStackLines, scene.request_stack.size()); ++i) {
    out += fmt::format("    {}\n", scene.request_stack[i].substr(0, kReportWidth - 4));
  }
  if (scene.oom_events > 1) {
    out += fmt::format("  the last of {} such events on this device\n", scene.oom_events);
  }
  return out;
}

std::string numbers_text(const OomScene& scene) {
  std::string out = scene.found ? "\nthe device at that moment\n" : "\nthe device at the peak\n";
  if (scene.total) out += row("device", quantity(*scene.total));
  if (scene.free) {
    out += row(
        "free", quantity(*scene.free),
        scene.free_is_recorded ? "measured at that moment" : "measured before, carried forward");
  }
  if (scene.others) out += row("other processes", quantity(*scene.others));
  if (scene.outside)
    out += row("outside", quantity(*scene.outside), "context, libraries, unseen processes");
  out += row("held by this process", quantity(scene.totals.in_use));
  out += row("  live", quantity(scene.totals.live()),
             fmt::format("{} blocks", scene.totals.block_count));
  if (scene.has_blocks) {
    out += row("  cached", quantity(scene.totals.cached()),
               scene.space.pending != 0 ? quantity(scene.space.pending) + " pending" : "");
    out +=
        row("  largest free piece", quantity(scene.space.largest),
            fmt::format("of {} pieces in {} segments", scene.space.pieces, scene.space.segments));
  }
  return out;
}

// The end of a long name says more than its beginning.
std::string tail(const std::string& name, size_t width) {
  return name.size() <= width ? name : "..." + name.substr(name.size() - width + 3);
}

std::string share(uint64_t part, uint64_t whole) {
  return whole == 0 ? ""
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string categories_text(const OomScene& scene) {
  std::vector<std::pair<std::string, uint64_t>> rows(scene.categories.begin(),
                                                     scene.categories.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = "\nwhat was live\n";
  for (const auto& [name, bytes] : rows) {
    out += row(name.c_str(), quantity(bytes), share(bytes, scene.totals.live()));
  }
  return out;
}

// Where there was no time at the error itself, what was said of the same blocks at another time.
std::string holders_text(const OomScene& scene, const SiteShare& site) {
  constexpr size_t kMost = 2;
  std::string out;
  for (size_t i = 0; i < std::min(kMost, site.holders.size()); ++i) {
    const SiteHolder& holder = site.holders[i];
    std::string when;
    if (!holder.at_oom) {
      const double seconds =
          (static_cast<double>(holder.time_ns) - static_cast<double>(scene.moment.time_ns)) / 1e9;
      when = fmt::format(" ({:.1f} s {})", std::abs(seconds), seconds < 0 ? "before" : "later");
    }
    out += paragraph("                 held by ", holder.chain + when);
  }
  return out;
}

std::string sites_text(const OomScene& scene, size_t top) {
  if (scene.sites.empty()) return {};
  std::string out = "\nwhich lines held it\n";
  size_t shown = 0;
  uint64_t rest = 0;
  for (const SiteShare& site : scene.sites) {
    if (shown++ >= top) {
      rest += site.bytes;
      continue;
    }
    out += fmt::format("{:>17} {:>7} x  {:<18}{}\n", quantity(site.bytes), site.blocks,
                       site.category.substr(0, 17), tail(site.site, 46));
    out += holders_text(scene, site);
  }
  if (shown > top) {
    out += fmt::format("{:>17}            {}\n", quantity(rest), counted(shown - top, "more line"));
  }
  return out;
}

std::string course_text(const OomScene& scene) {
  std::string out;
  if (!scene.steps.empty()) {
    out += "\nhow it came: live memory at the beginning of the last steps\n";
    const size_t first = scene.steps.size() > 8 ? scene.steps.size() - 8 : 0;
    for (size_t i = first; i < scene.steps.size(); ++i) {
      out +=
          fmt::format("  step {:<8}{:>14}\n", scene.steps[i].step, quantity(scene.steps[i].live));
    }
  }
  if (scene.found && scene.ended_later) {
    out += paragraph(
        "", fmt::format("\nat the end of the recording {} are live: by then the frames had "
                        "unwound and let go of the rest",
                        quantity(scene.live_at_end)));
  }
  return out;
}

}  // namespace

nlohmann::ordered_json json_of(const std::vector<SiteHolder>& holders) {
  auto list = nlohmann::ordered_json::array();
  for (const SiteHolder& holder : holders) {
    list.push_back({{"chain", holder.chain},
                    {"said", holder.said},
                    {"time_s", static_cast<double>(holder.time_ns) / 1e9},
                    {"at_oom", holder.at_oom}});
  }
  return list;
}

std::string text_report(const RecordingInfo& info, const RecordingDiagnosis& diagnosis,
                        size_t top) {
  const OomScene& scene = diagnosis.scene;
  std::string out = heading(info, scene);
  out += "\n" + verdict_text(diagnosis.audit);
  out += numbers_text(scene);
  out += categories_text(scene);
  out += sites_text(scene, top);
  out += course_text(scene);
  out += advice_text(diagnosis.advice);
  if (info.dropped_events != 0) {
    out += fmt::format("\n{} events were lost while recording: the figures are incomplete\n",
                       info.dropped_events);
  }
  for (const std::string& note : info.notes) out += paragraph("note: ", note);
  return out;
}

nlohmann::ordered_json json_report(const RecordingInfo& info, const RecordingDiagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  const OomScene& scene = diagnosis.scene;
  const auto optional_json = [](const std::optional<uint64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  json["schema"] = "vramtrack.oom/1";
  json["source"] = "recording";
  json["file"] = info.path;
  json["simulated"] = info.simulated;
  json["dropped_events"] = info.dropped_events;
  json["oom"] = scene.found;
  json["device"] = scene.device;
  json["sequence"] = scene.moment.sequence;
  json["time_s"] = static_cast<double>(scene.moment.time_ns) / 1e9;
  json["step"] = scene.moment.step == kNoStep ? Json(nullptr) : Json(scene.moment.step);
  json["oom_events"] = scene.oom_events;
  json["refused_by_driver"] = scene.refused_by_driver;
  add_verdict_json(diagnosis.audit, json);
  json["request"] = {{"bytes", scene.ask},
                     {"requested", scene.requested != 0 ? Json(scene.requested) : Json(nullptr)},
                     {"site", scene.request_site},
                     {"stack", scene.request_stack}};
  json["device_total"] = optional_json(scene.total);
  json["device_free"] = optional_json(scene.free);
  json["device_free_basis"] = !scene.free              ? "unknown"
                              : scene.free_is_recorded ? "recorded"
                                                       : "carried forward";
  json["other_processes"] = optional_json(scene.others);
  json["outside"] = optional_json(scene.outside);
  json["in_use"] = scene.totals.in_use;
  json["live"] = scene.totals.live();
  json["live_requested"] = scene.totals.requested;
  json["cached"] = scene.totals.cached();
  json["free_space"] = {{"bytes", scene.space.total},
                        {"largest", scene.space.largest},
                        {"largest_eligible", scene.space.largest_eligible},
                        {"pieces", scene.space.pieces},
                        {"pending", scene.space.pending},
                        {"segments", scene.space.segments},
                        {"split_segments", scene.space.split_segments}};
  json["categories"] = scene.categories;
  auto& sites = json["sites"] = Json::array();
  for (size_t i = 0; i < std::min(scene.sites.size(), kSitesInJson); ++i) {
    const SiteShare& site = scene.sites[i];
    sites.push_back({{"site", site.site},
                     {"category", site.category},
                     {"bytes", site.bytes},
                     {"blocks", site.blocks},
                     {"largest", site.largest},
                     {"holders", json_of(site.holders)}});
  }
  auto& steps = json["steps"] = Json::array();
  for (const StepLevel& level : scene.steps) {
    steps.push_back({{"step", level.step}, {"live", level.live}});
  }
  auto& growth = json["growth"] = Json::array();
  for (size_t i = 0; i < std::min<size_t>(scene.growth.size(), 50); ++i) {
    const SiteGrowth& site = scene.growth[i];
    growth.push_back({{"site", site.site}, {"bytes", site.bytes}, {"blocks", site.blocks}});
  }
  json["live_at_end"] = scene.live_at_end;
  json["advice"] = advice_json(diagnosis.advice);
  json["notes"] = info.notes;
  return json;
}

}  // namespace vramtrack
