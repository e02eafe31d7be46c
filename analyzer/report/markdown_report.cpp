#include "report/markdown_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/group_table.h"
#include "report/heading.h"
#include "report/text_report.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

void append_device(std::string& out, const Report& report, const DeviceReport& device) {
  const auto to = std::back_inserter(out);
  const MomentView& view = device.moment;
  const Unit unit = unit_for(view.totals.in_use);
  fmt::format_to(to, "\n## {}\n\n{}\n\n", markdown_cell(device_title(device)),
                 markdown_cell(verdict(report, device)));
  fmt::format_to(to, "| category | {} | % | blocks |\n| --- | ---: | ---: | ---: |\n", unit.name);
  for (const TableRow& row : rows_of(view.categories)) {
    fmt::format_to(to, "| {} | {} | {} | {} |\n", markdown_cell(row.name),
                   unit.number(row.amount.bytes), percent(row.amount.bytes, view.totals.in_use),
                   grouped(row.amount.blocks));
    for (const CallSite& site : sites_of_row(device, row.name, report.options))
      fmt::format_to(to, "| &nbsp;&nbsp;at {} | {} | {} | {} |\n", markdown_cell(site.name),
                     unit.number(site.amount.bytes), percent(site.amount.bytes, view.totals.in_use),
                     grouped(site.amount.blocks));
  }
  fmt::format_to(to, "| **in use** | {} | 100.0 | |\n\n", unit.number(view.totals.in_use));
  fmt::format_to(to, "Most allocated {}, most in use {}, most reserved {}. ",
                 quantity(device.course.most_allocated), quantity(device.course.most_in_use),
                 quantity(device.course.most_reserved));
  if (view.outside.measured) {
    fmt::format_to(to, "Measured {} used, residual {} {}.\n", quantity(view.outside.last.used),
                   unit.signed_number(view.outside.residual), unit.name);
  } else {
    fmt::format_to(to, "Not measured from outside.\n");
  }
  out += groups_markdown(report, device, unit);
  if (device.sites.empty()) return;
  fmt::format_to(to, "\n| call site | mostly | {} | blocks |\n| --- | --- | ---: | ---: |\n",
                 unit.name);
  for (size_t i = 0; i < std::min(report.options.top, device.sites.size()); ++i) {
    const CallSite& site = device.sites[i];
    fmt::format_to(to, "| {} | {} | {} | {} |\n", markdown_cell(site.name), markdown_cell(site.row),
                   unit.number(site.amount.bytes), grouped(site.amount.blocks));
    for (const SiteHolder& holder : site.holders)
      fmt::format_to(to, "| &nbsp;&nbsp;held by {} | | | |\n", markdown_cell(holder.chain));
  }
}

}  // namespace

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '>' || c == '*' || c == '_') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string markdown_report(const Report& report) {
  std::string out =
      "# vramtrack report\n\n" + markdown_cell(heading(report)) + ": `" + subject(report) + "`\n";
  for (const DeviceReport& device : report.devices) append_device(out, report, device);
  fmt::format_to(std::back_inserter(out), "\n{} events, {} dropped.\n",
                 grouped(report.timeline.events), grouped(report.info.dropped_events));
  for (const Hint& hint : report.hints) {
    out += "\n* " + markdown_cell(hint.text) + ": `" + hint.command + "`\n";
  }
  for (const std::string& note : report.info.notes) out += "\n> " + markdown_cell(note) + "\n";
  return out;
}

}  // namespace vramtrack
