#include "report/waste_report.h"

#include <fmt/format.h>

#include "report/json_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

std::string share_text(double share) {
  return fmt::format("{:.0f} %", share * 100);
}

std::string limits_text(const WasteReport& report) {
  const WasteLimits& limits = report.limits;
  const std::string least = report.by_steps
                                ? fmt::format("{} whole steps and {} of the launches", limits.steps,
                                              share_text(limits.share_with_steps))
                                : fmt::format("{} of the launches (too few steps to count in)",
                                              share_text(limits.share_without_steps));
  return fmt::format("long means: {}; at least {} at one time\n", least, quantity(limits.bytes));
}

// "12 of 40 steps, 31 % of the launches, 4.2 s".
std::string length_text(const WasteReport& report, const WasteFinding& finding) {
  std::string text;
  if (report.by_steps) text = fmt::format("{} of {} steps, ", finding.longest_steps, report.steps);
  return text + fmt::format("{} of the launches, {:.2f} s",
                            percent(finding.longest_work, report.work) + " %",
                            finding.longest_seconds);
}

std::string neighbour_text(const Recording& recording, std::string_view word, const Touch& touch) {
  if (touch.kernel == 0) return {};
  return fmt::format("   {} {}\n", word,
                     shortened(toucher_title(recording.definitions(), touch.kernel), 76));
}

void append_finding(std::string& out, size_t number, const WasteFinding& finding,
                    const WasteReport& report, const Recording& recording) {
  const uint64_t peak = report.peaks.at(finding.device);
  out +=
      fmt::format("\n{}. {}: {}\n", number, shortened(finding.site, 50), sentence_of(finding.kind));
  out += fmt::format("   {} at one time, {} in all; {:.2f} GiB s\n", quantity(finding.bytes),
                     counted(finding.blocks, "block"), finding.byte_seconds / (1 << 30));
  out += fmt::format("   longest: {}\n", length_text(report, finding));
  out += neighbour_text(recording, "last used by", finding.before);
  out += neighbour_text(recording, "next used by", finding.after);
  if (finding.peak_without < peak)
    out += fmt::format("   the peak of device {} without it: {} ({} less)\n", finding.device,
                       quantity(finding.peak_without), quantity(peak - finding.peak_without));
  else
    out += "   the peak stays the same without it\n";
}

std::string verdict(const WasteReport& report) {
  if (report.findings.empty()) return "nothing is held without use\n";
  std::string text =
      report.findings.size() == 1
          ? "1 place holds memory without use\n"
          : fmt::format("{} places hold memory without use\n", report.findings.size());
  for (const auto& [device, peak] : report.peaks) {
    const uint64_t without = report.peaks_without.at(device);
    const Unit unit = unit_for(peak);
    if (without < peak)
      text += fmt::format("without that, device {} would peak at {} instead of {}\n", device,
                          unit.quantity(without), unit.quantity(peak));
  }
  return text;
}

Json step_of(const Touch& touch) {
  return touch.step == kNoStep ? Json(nullptr) : Json(touch.step);
}

Json neighbour_json(const Recording& recording, const Touch& touch) {
  return {
      {"kernel", touch.kernel == 0 ? Json(nullptr)
                                   : Json(toucher_title(recording.definitions(), touch.kernel))},
      {"time_s", static_cast<double>(touch.time_ns) * 1e-9},
      {"step", step_of(touch)}};
}

Json finding_json(const WasteFinding& finding, const WasteReport& report,
                  const Recording& recording) {
  return {{"kind", name_of(finding.kind)},
          {"device", finding.device},
          {"site", finding.site},
          {"blocks", finding.blocks},
          {"bytes", finding.bytes},
          {"byte_seconds", finding.byte_seconds},
          {"longest",
           {{"launches", finding.longest_work},
            {"share", static_cast<double>(finding.longest_work) / static_cast<double>(report.work)},
            {"steps", finding.longest_steps},
            {"seconds", finding.longest_seconds},
            {"from", neighbour_json(recording, finding.before)},
            {"to", neighbour_json(recording, finding.after)}}},
          {"peak_without_bytes", finding.peak_without},
          {"frames", json_frames(recording.definitions(), finding.stack)}};
}

}  // namespace

std::string waste_text(const WasteReport& report, const Recording& recording, size_t top) {
  std::string out = recording.info().simulated ? "simulated: " : "";
  out += verdict(report) + limits_text(report);
  if (report.without_layout != 0)
    out += fmt::format(
        "note: what {} launches were given is not known; memory that only they use seems unused\n",
        grouped(report.without_layout));
  size_t number = 0;
  for (const WasteFinding& finding : report.findings) {
    if (number == top) {
      out += fmt::format("\n... {} more\n", report.findings.size() - top);
      break;
    }
    append_finding(out, ++number, finding, report, recording);
  }
  return out;
}

Json waste_json(const WasteReport& report, const Recording& recording) {
  const WasteLimits& limits = report.limits;
  Json json = {{"schema", "vramtrack.waste/1"}};
  json.update(json_of(recording.info()));
  json["by_steps"] = report.by_steps;
  json["steps"] = report.steps;
  json["launches"] = report.work;
  json["launches_without_layout"] = report.without_layout;
  json["limits"] = {{"steps", limits.steps},
                    {"fewest_steps", limits.fewest_steps},
                    {"share_with_steps", limits.share_with_steps},
                    {"share_without_steps", limits.share_without_steps},
                    {"bytes", limits.bytes}};
  Json& devices = json["devices"] = Json::array();
  for (const auto& [device, peak] : report.peaks) {
    devices.push_back({{"device", device},
                       {"peak_bytes", peak},
                       {"peak_without_bytes", report.peaks_without.at(device)}});
  }
  Json& findings = json["findings"] = Json::array();
  for (const WasteFinding& finding : report.findings)
    findings.push_back(finding_json(finding, report, recording));
  return json;
}

}  // namespace vramtrack
