#include "report/heading.h"

#include <fmt/format.h>

#include <algorithm>

#include "wording/units.h"

namespace vramtrack {
namespace {

bool only_cpu(const Report& report) {
  return !report.devices.empty() &&
         std::all_of(report.devices.begin(), report.devices.end(),
                     [](const DeviceReport& device) { return device.device < 0; });
}

// "activations 61 %, parameters 20 %, cached 9 %": the largest, as far as they matter.
std::string largest_rows(const MomentView& view) {
  std::vector<size_t> order(kCategoryCount);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto bytes = [&](size_t i) { return view.categories.categories[i].bytes; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes(a) > bytes(b); });
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    const double share = 100.0 * static_cast<double>(bytes(order[i])) /
                         static_cast<double>(std::max<uint64_t>(view.totals.in_use, 1));
    if (share < 1) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", kCategoryNames[order[i]], share);
  }
  return text;
}

std::string out_of_memory(const DeviceReport& device, const OomEvent& oom) {
  const MomentView& view = device.moment;
  std::string text = fmt::format("Out of memory at {}: asked for {}", when(view),
                                 quantity(oom.requested != 0 ? oom.requested : oom.size));
  text += fmt::format(" with {} in use, {} of it allocated", quantity(view.totals.in_use),
                      quantity(view.allocated));
  if (device.total_bytes != 0)
    text += fmt::format(", on a card of {}", quantity(device.total_bytes));
  return text + ".";
}

}  // namespace

std::string_view provenance(const Report& report) {
  if (report.info.source == RecordingInfo::Source::snapshot) return "snapshot";
  if (only_cpu(report)) return "CPU";
  return report.info.simulated ? "simulated" : "measured";
}

static std::string kind_of_numbers(const Report& report) {
  const std::string_view how = provenance(report);
  if (how == "snapshot") return "Imported from a " + report.info.format;
  if (how == "CPU") return "CPU tensors: no GPU was used";
  if (how == "simulated") return "SIMULATED GPU: nothing here was measured on a card";
  return "Measured on a GPU";
}

std::string heading(const Report& report) {
  const std::string_view sampled = report.info.sample_bytes != 0 ? "SAMPLED. " : "";
  return std::string(sampled) + kind_of_numbers(report);
}

std::string subject(const Report& report) {
  return report.info.command.empty() ? report.info.path
                                     : fmt::format("{}", fmt::join(report.info.command, " "));
}

std::string device_title(const DeviceReport& device) {
  if (device.device < 0) return "CPU";
  std::string title = fmt::format("Device {}", device.device);
  if (!device.name.empty()) title += ", " + device.name;
  if (device.total_bytes != 0) title += " (" + quantity(device.total_bytes) + ")";
  return title;
}

std::string when(const MomentView& view) {
  std::string text = seconds(view.moment.time_ns);
  if (view.moment.step != kNoStep) text += fmt::format(", step {}", view.moment.step);
  if (!view.phase.empty()) text += ", phase " + view.phase;
  return text;
}

std::string verdict(const Report& report, const DeviceReport& device) {
  if (device.course.most_in_use == 0 && device.course.ooms.empty()) {
    return "No device memory was allocated.";
  }
  std::string text;
  const bool at_oom = device.moment.moment.name == "oom";
  if (at_oom) {
    text = out_of_memory(device, device.course.ooms.back());
  } else {
    const bool at_peak = device.moment.moment.name == "allocated-peak";
    text = fmt::format("{} ({}) {} in use, {} allocated.",
                       at_peak ? "At the peak of allocated memory"
                               : fmt::format("At {}", device.moment.moment.name),
                       when(device.moment), quantity(device.moment.totals.in_use),
                       quantity(device.moment.allocated));
    if (!device.course.ooms.empty()) {
      text += fmt::format(" It ran out of memory {}.", counted(device.course.ooms.size(), "time"));
    }
  }
  const std::string rows = largest_rows(device.moment);
  if (!rows.empty()) text += " Most of it: " + rows + ".";
  if (report.info.dropped_events != 0) {
    text += fmt::format(" {} events were lost: the true numbers may be higher or lower.",
                        grouped(report.info.dropped_events));
  }
  return text;
}

}  // namespace vramtrack
