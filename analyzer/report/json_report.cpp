#include "report/json_report.h"

#include <algorithm>
#include <cmath>

#include "diagnosis/oom/oom_recording_report.h"
#include "report/group_table.h"
#include "report/heading.h"
#include "report/text_report.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

Json step_of(uint64_t step) {
  return step == kNoStep ? Json(nullptr) : Json(step);
}
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_of(const Outside& outside, uint64_t now_ns) {
  if (!outside.measured) return nullptr;
  const Measurement& last = outside.last;
  Json json = {{"context_bytes", outside.context},
               {"libraries_bytes", last.libraries},
               {"used_bytes", last.used},
               {"total_bytes", last.total},
               {"age_s", seconds_of(now_ns - std::min(now_ns, last.time_ns))},
               {"other_processes_bytes", nullptr}};
  if (last.separable) json["other_processes_bytes"] = last.others_used;
  return json;
}

Json json_of(const MomentView& view) {
  Json categories = Json::object();
  for (size_t i = 0; i < kCategoryCount; ++i) {
    categories[std::string(kCategoryNames[i])] = view.categories.categories[i].bytes;
  }
  Json sub_rows = Json::object();
  for (const auto& [name, amount] : view.categories.sub_rows) sub_rows[name] = amount.bytes;
  double variance = 0;
  for (const Amount& amount : view.categories.categories) variance += amount.variance;
  Json residual = nullptr;
  if (view.outside.measured) residual = view.outside.residual;
  return {{"name", view.moment.name},
          {"time_s", seconds_of(view.moment.time_ns)},
          {"step", step_of(view.moment.step)},
          {"phase", text_or_null(view.phase)},
          {"in_use_bytes", view.totals.in_use},
          {"reserved_bytes", view.totals.reserved},
          {"allocated_bytes", view.allocated},
          {"standard_error_bytes", view.totals.sampled ? Json(std::sqrt(variance)) : Json(nullptr)},
          {"requested_bytes", view.totals.requested},
          {"cached_bytes", view.totals.cached()},
          {"pending_bytes", view.totals.pending},
          {"direct_bytes", view.totals.direct},
          {"residual_bytes", residual},
          {"outside_measured", json_of(view.outside, view.moment.time_ns)},
          {"host",
           {{"managed_bytes", view.host.managed},
            {"pinned_bytes", view.host.pinned + view.host.vmm_host},
            {"registered_bytes", view.host.registered}}},
          {"categories", categories},
          {"sub_rows", sub_rows}};
}

Json json_of(const CallSite& site, const Definitions& definitions) {
  return {{"site", site.name},
          {"file", text_or_null(site.frame.file)},
          {"line", site.frame.line == 0 ? Json(nullptr) : Json(site.frame.line)},
          {"function", text_or_null(site.frame.function)},
          {"bytes", site.amount.bytes},
          {"blocks", site.amount.blocks},
          {"standard_error_bytes", site.amount.standard_error()},
          {"stacks", site.stacks},
          {"category", site.row},
          {"categories", site.rows},
          {"holders", json_of(site.holders)},
          {"frames", json_frames(definitions, site.stack)}};
}

Json json_of(const OomEvent& oom, const Definitions& definitions) {
  return {{"time_s", seconds_of(oom.moment.time_ns)},
          {"step", step_of(oom.moment.step)},
          {"size_bytes", oom.size},
          {"requested_bytes", oom.requested == 0 ? Json(nullptr) : Json(oom.requested)},
          {"frames", json_frames(definitions, oom.stack)}};
}

Json json_of(const DeviceReport& device, const Report& report) {
  const DeviceTimeline& course = device.course;
  Json json = {{"device", device.device},
               {"name", text_or_null(device.name)},
               {"total_bytes", device.total_bytes == 0 ? Json(nullptr) : Json(device.total_bytes)},
               {"has_block_ledger", course.has_blocks},
               {"peak", json_of(device.peak)},
               {"allocated_peak", json_of(device.allocated_peak)},
               {"reserved_peak",
                {{"time_s", seconds_of(course.reserved_peak.time_ns)},
                 {"step", step_of(course.reserved_peak.step)},
                 {"reserved_bytes", course.most_reserved}}},
               {"moment", json_of(device.moment)},
               {"failed_requests", course.failed_requests}};
  Json& ooms = json["oom"] = Json::array();
  for (const OomEvent& oom : course.ooms) ooms.push_back(json_of(oom, *report.definitions));
  Json& sites = json["sites"] = Json::array();
  for (const CallSite& site : device.sites) sites.push_back(json_of(site, *report.definitions));
  json.update(groups_json(report, device));
  return json;
}

}  // namespace

Json json_of(const Frame& frame) {
  Json json = {{"function", frame.function},
               {"file", frame.file},
               {"line", frame.line},
               {"python", frame.python}};
  if (frame.inlined) json["inlined"] = true;
  if (!frame.module.empty()) json["module"] = frame.module;
  return json;
}

Json json_frames(const Definitions& definitions, StackId stack) {
  Json frames = Json::array();
  for (const FrameId id : definitions.stack(stack))
    frames.push_back(json_of(definitions.frame(id)));
  return frames;
}

Json json_of(const RecordingInfo& info) {
  return {{"file", info.path},
          {"format", info.format},
          {"command", info.command},
          {"host", text_or_null(info.host)},
          {"pid", info.pid == 0 ? Json(nullptr) : Json(info.pid)},
          {"start_unix_s", info.start_realtime_ns == 0
                               ? Json(nullptr)
                               : Json(static_cast<double>(info.start_realtime_ns) * 1e-9)},
          {"finished", info.finished},
          {"simulated", info.simulated},
          {"allocator_settings", info.allocator_settings},
          {"dropped_events", info.dropped_events},
          {"sample_bytes", info.sample_bytes == 0 ? Json(nullptr) : Json(info.sample_bytes)},
          {"ring", !info.ring ? Json(nullptr)
                              : Json{{"begins_s", seconds_of(info.ring->time_ns)},
                                     {"first_event", info.ring->sequence},
                                     {"complete", info.ring->complete}}},
          {"notes", info.notes}};
}

Json json_report(const Report& report) {
  Json json = {{"schema", "vramtrack.report/1"}, {"provenance", provenance(report)}};
  json.update(json_of(report.info));
  json["events"] = report.timeline.events;
  Json& earlier = json["earlier_peaks"] = Json::array();
  for (const EarlierPeak& peak : report.timeline.earlier_peaks) {
    earlier.push_back({{"what", name_of(peak.what)},
                       {"device", peak.moment.device},
                       {"bytes", peak.bytes},
                       {"time_s", seconds_of(peak.moment.time_ns)},
                       {"step", step_of(peak.moment.step)}});
  }
  json["by"] = name_of(report.options.by);
  json["category"] = text_or_null(report.options.category);
  Json& hints = json["hints"] = Json::array();
  for (const Hint& hint : report.hints) {
    hints.push_back({{"text", hint.text}, {"command", hint.command}});
  }
  Json& devices = json["devices"] = Json::array();
  for (const DeviceReport& device : report.devices) devices.push_back(json_of(device, report));
  return json;
}

std::string dump(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace vramtrack
