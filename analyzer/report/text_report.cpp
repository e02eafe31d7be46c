#include "report/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "attribution/call_site.h"
#include "report/group_table.h"
#include "report/heading.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

class TextWriter {
 public:
  explicit TextWriter(const Report& report) : report_(report) {}

  std::string write() {
    line("{}", shortened(heading(report_), kReportWidth));
    line("{}", shortened(subject(report_), kReportWidth));
    if (report_.devices.empty()) line("No device memory was allocated.");
    for (const DeviceReport& device : report_.devices) write_device(device);
    write_footer();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();  // columns without a value
    out_ += '\n';
  }

  void write_device(const DeviceReport& device) {
    const Unit unit = unit_for(device.moment.totals.in_use);
    line("");
    line("{}", device_title(device));
    line("{}", wrapped(verdict(report_, device)));
    if (device.moment.totals.sampled) write_sampling(device);
    if (device.moment.totals.in_use != 0) {
      line("");
      write_categories(device, unit);
    }
    write_reconciliation(device.moment, unit);
    write_high_water(device);
    out_ += groups_text(report_, device, unit);
    if (!device.sites.empty()) write_sites(device, unit);
  }

  // How far the estimates may be off, and the count that was not sampled beside them.
  void write_sampling(const DeviceReport& device) {
    const MomentView& view = device.moment;
    Amount all;
    for (const Amount& amount : view.categories.categories) all.add(amount);
    std::string text = fmt::format(
        "sampled: one block in {} of allocations was recorded. By these {} were allocated, "
        "standard "
        "error {}",
        quantity(report_.info.sample_bytes), quantity(view.totals.allocated),
        quantity(all.standard_error()));
    if (view.moment.name == "allocated-peak")
      text +=
          fmt::format("; by the allocator's own count {}", quantity(device.course.most_allocated));
    line("{}", wrapped(text + ". Rows of blocks are estimates; in use and reserved are exact."));
  }

  void write_categories(const DeviceReport& device, const Unit& unit) {
    const MomentView& view = device.moment;
    const bool sampled = view.totals.sampled;
    line("  {:<34}{:>12}{:>8}{:>12}{:>14}", "category", unit.name, "%",
         sampled ? "kept blocks" : "blocks", sampled ? "std. error" : "");
    for (const TableRow& row : rows_of(view.categories)) {
      line("  {:<34}{:>12}{:>8}{:>12}{:>14}", shortened((row.sub_row ? "  " : "") + row.name, 34),
           unit.number(row.amount.bytes), percent(row.amount.bytes, view.totals.in_use),
           row.amount.blocks == 0 ? "" : grouped(row.amount.blocks),
           row.amount.variance > 0 ? unit.number(row.amount.standard_error()) : "");
      for (const CallSite& site : sites_of_row(device, row.name, report_.options))
        line("  {:<34}{:>12}{:>8}{:>12}", shortened("    at " + site.name, 34),
             unit.number(site.amount.bytes), percent(site.amount.bytes, view.totals.in_use),
             grouped(site.amount.blocks));
    }
    line("  {:<34}{:>12}{:>8}", "in use", unit.number(view.totals.in_use), "100.0");
  }

  void write_reconciliation(const MomentView& view, const Unit& unit) {
    const uint64_t cached = view.categories.of(Category::cached).bytes;
    const uint64_t outside = view.categories.of(Category::outside).bytes;
    line("");
    line("  {} in use = {} in categories + {} cached + {} outside",
         unit.quantity(view.totals.in_use), unit.number(view.categories.sum() - cached - outside),
         unit.number(cached), unit.number(outside));
    const Outside& measured = view.outside;
    if (view.moment.device < 0) return;
    if (!measured.measured) {
      line("  not measured from outside: no residual can be given");
      return;
    }
    const uint64_t age = view.moment.time_ns - std::min(view.moment.time_ns, measured.last.time_ns);
    const std::string others =
        measured.last.separable
            ? fmt::format("{} of other processes", unit.number(measured.last.others_used))
            : std::string("other processes (not separable)");
    const std::string libraries = report_.info.simulated
                                      ? fmt::format(" (estimated), {} of libraries (estimated)",
                                                    unit.number(measured.last.libraries))
                                      : std::string();
    line("{}", wrapped(fmt::format("  measured {} before: {} used on the card: the ledger, {} of "
                                   "contexts and modules{}, {}; residual {} {}",
                                   seconds(age), unit.quantity(measured.last.used),
                                   unit.number(measured.context), libraries, others,
                                   unit.signed_number(measured.residual), unit.name),
                       2));
  }

  void write_high_water(const DeviceReport& device) {
    const DeviceTimeline& course = device.course;
    const auto mark = [](uint64_t bytes, const Moment& moment) {
      std::string text = fmt::format("{} at {}", quantity(bytes), seconds(moment.time_ns));
      if (moment.step != kNoStep) text += fmt::format(" (step {})", moment.step);
      return text;
    };
    line("  most allocated  {}", mark(course.most_allocated, course.allocated_peak));
    line("  most in use     {}", mark(course.most_in_use, course.physical_peak));
    if (course.most_reserved != 0) {
      line("  most reserved   {}", mark(course.most_reserved, course.reserved_peak));
    }
    for (const EarlierPeak& peak : report_.timeline.earlier_peaks) {
      if (peak.moment.device != device.device || peak.bytes <= value_in_ring(course, peak.what))
        continue;
      line("  before the ring {} {}; what it was made of is gone", name_of(peak.what),
           mark(peak.bytes, peak.moment));
    }
    const HostTotals& host = device.moment.host;
    if (host.managed + host.pinned + host.registered + host.vmm_host != 0) {
      line("  beside it: managed {}, pinned {}, registered {}", quantity(host.managed),
           quantity(host.pinned + host.vmm_host), quantity(host.registered));
    }
    if (course.failed_requests != 0) {
      line("  the driver refused {}", counted(course.failed_requests, "request"));
    }
  }

  // Maxima that the ring itself shows are not told twice.
  static uint64_t value_in_ring(const DeviceTimeline& course, RingPeak what) {
    switch (what) {
      case RingPeak::allocated:
        return course.most_allocated;
      case RingPeak::reserved:
        return course.most_reserved;
      case RingPeak::driver:
        return course.most_in_use;
      case RingPeak::used:
        break;
    }
    return UINT64_MAX;  // measured, and no number of this ledger
  }

  void write_sites(const DeviceReport& device, const Unit& unit) {
    const size_t shown = std::min(report_.options.top, device.sites.size());
    line("");
    line("  who holds it: {} of {} call sites{}", shown, device.sites.size(),
         report_.options.category.empty() ? "" : ", only " + report_.options.category);
    line("  {:>10}{:>7}{:>9}  {:<22}{}", unit.name, "%", "blocks", "mostly", "call site");
    for (size_t i = 0; i < shown; ++i) {
      const CallSite& site = device.sites[i];
      line("  {:>10}{:>7}{:>9}  {:<22}{}", unit.number(site.amount.bytes),
           percent(site.amount.bytes, device.moment.totals.in_use), grouped(site.amount.blocks),
           shortened(site.row, 21), shortened(site.name, kReportWidth - 52));
      for (size_t held = 0; held < std::min<size_t>(2, site.holders.size()); ++held)
        line("{}", wrapped("      held by " + site.holders[held].chain, 8));
      if (report_.options.by == Grouping::site) write_chain(site);
    }
  }

  // The stack that holds most of a site, from the allocation outwards.
  void write_chain(const CallSite& site) {
    constexpr size_t kMostFrames = 12;
    const std::span<const FrameId> frames = report_.definitions->stack(site.stack);
    size_t shown = 0;
    for (const FrameId id : frames) {
      const Frame& frame = report_.definitions->frame(id);
      if (frame.function == "??") continue;
      if (shown++ == kMostFrames) {
        line("      ...");
        break;
      }
      line("      {}", shortened(describe(frame), kReportWidth - 6));
    }
  }

  void write_footer() {
    line("");
    line("{} events, {} dropped", grouped(report_.timeline.events),
         grouped(report_.info.dropped_events));
    const Anomalies& anomalies = report_.timeline.anomalies;
    const uint64_t wrong = anomalies.witness_allocated_wrong + anomalies.witness_reserved_wrong;
    if (wrong != 0) {
      line("{}", wrapped(fmt::format("warning: the allocator's own counters contradict this replay "
                                     "{} times; `vramtrack check` says more",
                                     grouped(wrong))));
    }
    for (const Hint& hint : report_.hints) {
      line("{}", wrapped(hint.text, 2));
      line("  more: {}", hint.command);
    }
    for (const std::string& note : report_.info.notes) line("{}", wrapped("note: " + note, 6));
    if (!report_.devices.empty() && report_.options.by == Grouping::category) {
      line("next: vramtrack report --by site|module|phase|step|kernel, vramtrack blocks --json");
    }
  }

  const Report& report_;
  std::string out_;
};

}  // namespace

std::string_view name_of(RingPeak what) {
  switch (what) {
    case RingPeak::allocated:
      return "allocated";
    case RingPeak::reserved:
      return "reserved";
    case RingPeak::driver:
      return "driver";
    case RingPeak::used:
      return "used";
  }
  return "unknown";
}

std::vector<TableRow> rows_of(const CategoryTable& table) {
  std::vector<size_t> order;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    if (table.categories[i].bytes != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return table.categories[a].bytes > table.categories[b].bytes;
  });
  std::vector<TableRow> rows;
  for (const size_t i : order) {
    rows.push_back({std::string(kCategoryNames[i]), table.categories[i], false});
    const std::string prefix = std::string(kCategoryNames[i]) + "/";
    for (const auto& [name, amount] : table.sub_rows) {
      if (name.starts_with(prefix)) rows.push_back({name, amount, true});
    }
  }
  return rows;
}

std::string text_report(const Report& report) {
  return TextWriter(report).write();
}

}  // namespace vramtrack
