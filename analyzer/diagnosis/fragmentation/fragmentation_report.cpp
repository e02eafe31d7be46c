#include "diagnosis/fragmentation/fragmentation_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/fragmentation/segment_map.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

std::string row(std::string_view label, uint64_t bytes, std::string_view note = {}) {
  return fmt::format("  {:<26}{:>12}{}{}\n", label, quantity(bytes), note.empty() ? "" : "  ",
                     note);
}

std::string share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:5.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string heading(const RecordingInfo& info, const FragmentationReport& report) {
  const Moment& moment = report.now.moment;
  std::string out;
  if (info.simulated) out += "SIMULATED: ran on the simulated GPU\n";
  out += fmt::format("GPU {}, {}", report.now.device,
                     moment.name.empty() ? "at the moment asked for" : "at " + moment.name);
  out += fmt::format(" ({:.3f} s", static_cast<double>(moment.time_ns) / 1e9);
  if (moment.step != kNoStep) out += fmt::format(", step {}", moment.step);
  return out + ")\n";
}

std::string sums_text(const FragmentationReport& report) {
  const FragmentationSums& sums = report.now.total;
  std::string out;
  out += row("reserved", sums.reserved,
             fmt::format("{} segments; {} at most", sums.segments, quantity(report.reserved_peak)));
  out += row("allocated", sums.allocated, share(sums.allocated, sums.reserved));
  out += row("  of it rounding", sums.rounding(), share(sums.rounding(), sums.reserved));
  out += row("free", sums.free,
             fmt::format("{} in {} holes, the largest {}", share(sums.free, sums.reserved),
                         sums.holes, quantity(sums.largest_free)));
  static constexpr std::array<std::string_view, kHoleReasons> kNotes = {
      "emptying the cache returns it", "freed, but a stream is not done with it",
      "smaller than any recent request of its pool", "held by blocks that fill less than a quarter",
      "the next requests can use it"};
  static constexpr std::array<std::string_view, kHoleReasons> kLabels = {
      "  releasable", "  pending", "  too small", "  pinned", "  reusable"};
  for (size_t i = 0; i < kHoleReasons; ++i)
    if (sums.by_reason[i] != 0) out += row(kLabels[i], sums.by_reason[i], kNotes[i]);
  if (!report.now.requests_known)
    out +=
        "  no requests are recorded before this moment: 'too small' is judged by the live blocks\n";
  return out;
}

std::string measures_text(const FragmentationSums& sums) {
  return fmt::format(
      "\n"
      "  utilisation   {:6.1f} %  allocated / reserved\n"
      "  availability  {:6.1f} %  largest free block / all that is free\n"
      "  gap index     {:8.5f}  sum of gap^2 / reserved^2\n",
      100 * sums.utilisation(), 100 * sums.availability(), sums.gap_index());
}

std::string pool_name(const PoolKey& key) {
  std::string name = key.small_pool ? "small" : "large";
  if (key.pool != 0) name += fmt::format(", private {}", key.pool);
  if (key.stream != 0) name += fmt::format(", stream {:#x}", key.stream);
  return name;
}

std::string pools_text(const Fragmentation& now) {
  if (now.pools.size() < 2) return "";
  std::string out = fmt::format("\n  {:<28}{:>8}{:>12}{:>12}{:>12}{:>12}\n", "pool", "segments",
                                "reserved", "allocated", "free", "largest");
  size_t left = 20;
  for (const auto& [key, sums] : now.pools) {
    if (left-- == 0) {
      out += fmt::format("  ... {} more\n", now.pools.size() - 20);
      break;
    }
    out += fmt::format("  {:<28}{:>8}{:>12}{:>12}{:>12}{:>12}\n", pool_name(key), sums.segments,
                       quantity(sums.reserved), quantity(sums.allocated), quantity(sums.free),
                       quantity(sums.largest_free));
  }
  return out;
}

std::string pins_text(const Fragmentation& now, size_t top) {
  if (now.pins.empty()) return "";
  std::string out = "\nlines whose blocks keep large segments that are nearly empty\n";
  out += fmt::format("  {:>11}{:>9}{:>8}{:>11}  {}\n", "kept free", "segments", "blocks", "bytes",
                     "line");
  for (size_t i = 0; i < std::min(top, now.pins.size()); ++i) {
    const Pin& pin = now.pins[i];
    out += fmt::format("  {:>11}{:>9}{:>8}{:>11}  {}\n", quantity(pin.pinned), pin.segments,
                       pin.blocks, quantity(pin.bytes), pin.site.substr(0, 46));
  }
  if (now.pins.size() > top) out += fmt::format("  ... {} more lines\n", now.pins.size() - top);
  return out;
}

std::string range_text(const ByteRange& range) {
  if (range.low == range.high) return quantity(range.low);
  return quantity(range.low) + " to " + quantity(range.high);
}

std::string replay_heading(const FragmentationReport& report) {
  const DriverCounts& replay = *report.replay;
  const std::string settings =
      report.replayed_settings.text().empty() ? "the defaults" : report.replayed_settings.text();
  if (report.replay_exact)
    return paragraph("",
                     fmt::format("the same requests replayed under other settings (under those in "
                                 "force, {}, the replay gives all {} addresses and all {} segment "
                                 "events of the recording)",
                                 settings, replay.requests, replay.segment_events));
  const std::string agreement =
      fmt::format("{} of {} addresses and {} of {} segment events", replay.addresses_equal,
                  replay.requests, replay.segment_events_equal, replay.segment_events);
  if (report.predictions.empty())
    return paragraph("", fmt::format("under the settings in force ({}) the replay gives only {} of "
                                     "the recording, so that nothing is said about other settings; "
                                     "first difference: {}",
                                     settings, agreement, replay.first_difference));
  return paragraph("",
                   fmt::format("the same requests replayed under other settings (under those in "
                               "force, {}, the replay gives the recorded maximum within 1 %, and "
                               "{})",
                               settings, agreement));
}

std::string replay_text(const FragmentationReport& report) {
  if (!report.replay) {
    return "\nno allocations are recorded: what other settings would have done cannot be "
           "replayed\n";
  }
  std::string out = "\n" + replay_heading(report);
  if (report.predictions.empty()) return out;
  out += fmt::format("  {:<34}{:>26}{:>14}\n", "setting", "reserved at most", "saved");
  out += fmt::format("  {:<34}{:>26}\n", "as recorded",
                     quantity(report.replay->recorded_reserved_peak));
  bool open = false;
  for (const Prediction& prediction : report.predictions) {
    open = open || prediction.reserved_peak.low != prediction.reserved_peak.high;
    const std::string_view end = prediction.fails_earlier  ? "  OOM sooner"
                                 : !prediction.oom_avoided ? ""
                                 : *prediction.oom_avoided ? "  no OOM"
                                                           : "  OOM too";
    out += fmt::format("  {:<34}{:>26}{:>14}{}\n",
                       settings_change(report.replayed_settings, prediction.settings).substr(0, 34),
                       range_text(prediction.reserved_peak), signed_quantity(prediction.saving()),
                       end);
  }
  if (open)
    out += paragraph("  ",
                     "a range: the recording leaves open what the allocator looked like at its "
                     "beginning, or where the driver would have put segments; 'saved' is the "
                     "cautious end");
  return out;
}

std::string ideal_text(const FragmentationReport& report) {
  if (!report.ideal || report.ideal->items == 0) return "";
  const IdealPacking& ideal = *report.ideal;
  if (ideal.lower_bound > ideal.reserved_peak)
    return "\n" +
           paragraph("", fmt::format("{} were alive at once, more than was ever reserved: the "
                                     "recording contradicts itself",
                                     quantity(ideal.lower_bound)));
  return "\n" +
         paragraph(
             "", fmt::format("the reserved maximum of {} is {:.1f} % above the best packing found "
                             "for the same {} blocks, {}; below {} nobody can go, that much "
                             "was alive at once",
                             quantity(ideal.reserved_peak), 100 * ideal.excess(), ideal.items,
                             quantity(ideal.best_found), quantity(ideal.lower_bound)));
}

}  // namespace

FragmentationReport report_fragmentation(const Recording& recording, const Timeline& timeline,
                                         int16_t device, const std::string& at) {
  FragmentationReport report;
  report.now = analyze_fragmentation(recording, timeline, device, at);
  report.settings = recording.info().allocator_settings;
  if (const DeviceTimeline* course = timeline.device(device))
    report.reserved_peak = course->most_reserved;
  const WhatIf what_if(recording, device);
  if (!what_if.possible()) return report;
  report.replay = what_if.replay();
  report.replay_exact = what_if.exact();
  report.replayed_settings = what_if.settings();
  if (what_if.credible())
    for (const AllocatorSettings& settings : what_if.alternatives())
      report.predictions.push_back(what_if.predict(settings));
  std::stable_sort(
      report.predictions.begin(), report.predictions.end(),
      [](const Prediction& a, const Prediction& b) { return a.saving() > b.saving(); });
  report.ideal = ideal_packing(recording, device, report.reserved_peak);
  return report;
}

std::string text_report(const RecordingInfo& info, const FragmentationReport& report, size_t top) {
  std::string out = heading(info, report) + sums_text(report);
  out += measures_text(report.now.total);
  out += pools_text(report.now);
  if (!report.now.segments.empty()) {
    out +=
        "\nsegments with most free in them, in how many holes (# full, . free, p pending; * "
        "expandable)\n";
    out += segment_map(report.now.segments, top);
  }
  out += pins_text(report.now, top);
  out += replay_text(report);
  out += ideal_text(report);
  if (!info.notes.empty()) out += "\n";
  for (const std::string& note : info.notes) out += paragraph("note: ", note);
  return out;
}

}  // namespace vramtrack
