#include "report/group_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/markdown_report.h"
#include "report/text_report.h"
#include "wording/lines.h"

namespace vramtrack {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNumbersWidth = 30;  // of a line of text, before the name

bool has_table(Grouping by) {
  return by != Grouping::category && by != Grouping::site;
}

std::string layers_of(const ModuleNode& node) {
  return node.layers > 1 ? fmt::format(" ({} modules)", node.layers) : std::string();
}

// A row of either kind of table, before it is text or Markdown.
struct Line {
  Amount amount;
  size_t depth = 0;
  std::string name;
  bool site = false;
};

void append_sites(std::vector<Line>& lines, const std::vector<CallSite>& sites, size_t depth,
                  const ReportOptions& options) {
  for (const CallSite& site : shown_sites(sites, options))
    lines.push_back(
        {site.amount, depth, fmt::format("at {}  [{}]", site.name, site.row), /*site=*/true});
}

std::vector<Line> lines_of(const std::vector<Group>& groups, const ReportOptions& options) {
  std::vector<Line> lines;
  for (size_t i = 0; i < std::min(options.top, groups.size()); ++i) {
    lines.push_back({groups[i].amount, 0, groups[i].name});
    append_sites(lines, groups[i].sites, 1, options);
  }
  return lines;
}

std::vector<Line> lines_of(const ModuleNode& root, const ReportOptions& options) {
  std::vector<Line> lines;
  for (const ModuleRow& row : largest_modules(root, options.top)) {
    lines.push_back({row.node->amount, row.depth, row.node->path + layers_of(*row.node)});
    append_sites(lines, row.node->sites, row.depth + 1, options);
  }
  return lines;
}

struct Table {
  std::string title;
  std::vector<Line> lines;
  size_t more = 0;
};

std::vector<Table> tables_of(const Report& report, const DeviceReport& device) {
  const ReportOptions& options = report.options;
  const auto left = [&](size_t all) { return all - std::min(options.top, all); };
  if (options.by == Grouping::module) {
    const ModuleTrees& trees = device.modules;
    return {{"module, layers summed", lines_of(trees.summed, options),
             left(count_modules(trees.summed))},
            {"module, layer by layer", lines_of(trees.by_layer, options),
             left(count_modules(trees.by_layer))}};
  }
  return {{std::string(name_of(options.by)), lines_of(device.groups, options),
           left(device.groups.size())}};
}

Json json_of(const std::vector<CallSite>& sites) {
  Json json = Json::array();
  for (const CallSite& site : sites)
    json.push_back({{"site", site.name},
                    {"bytes", site.amount.bytes},
                    {"blocks", site.amount.blocks},
                    {"category", site.row}});
  return json;
}

Json json_of(const ModuleNode& node) {
  Json children = Json::array();
  for (const ModuleNode& child : node.children) children.push_back(json_of(child));
  return {{"module", node.path},          {"bytes", node.amount.bytes},
          {"blocks", node.amount.blocks}, {"own_bytes", node.own.bytes},
          {"modules", node.layers},       {"categories", node.rows},
          {"sites", json_of(node.sites)}, {"children", children}};
}

}  // namespace

std::span<const CallSite> shown_sites(const std::vector<CallSite>& sites,
                                      const ReportOptions& options) {
  if (!options.expand) return {};
  // A third as many as there are rows: a table of ten rows stays on one screen.
  const size_t most = std::max<size_t>(1, options.top / 3);
  return std::span(sites).first(std::min(most, sites.size()));
}

std::span<const CallSite> sites_of_row(const DeviceReport& device, const std::string& row,
                                       const ReportOptions& options) {
  for (const Group& group : device.groups)
    if (options.by == Grouping::category && group.name == row)
      return shown_sites(group.sites, options);
  return {};
}

std::string groups_text(const Report& report, const DeviceReport& device, const Unit& unit) {
  if (!has_table(report.options.by)) return {};
  std::string out;
  const auto to = std::back_inserter(out);
  for (const Table& table : tables_of(report, device)) {
    fmt::format_to(to, "\n  {:>10}{:>7}{:>9}  {}\n", unit.name, "%", "blocks", table.title);
    for (const Line& line : table.lines)
      fmt::format_to(
          to, "  {:>10}{:>7}{:>9}  {}\n", unit.number(line.amount.bytes),
          percent(line.amount.bytes, device.moment.totals.in_use), grouped(line.amount.blocks),
          shortened(std::string(2 * line.depth, ' ') + line.name, kReportWidth - kNumbersWidth));
    if (table.more != 0) fmt::format_to(to, "  ... and {} more\n", grouped(table.more));
  }
  return out;
}

std::string groups_markdown(const Report& report, const DeviceReport& device, const Unit& unit) {
  if (!has_table(report.options.by)) return {};
  std::string out;
  const auto to = std::back_inserter(out);
  for (const Table& table : tables_of(report, device)) {
    fmt::format_to(to, "\n| {} | {} | blocks |\n| --- | ---: | ---: |\n", table.title, unit.name);
    for (const Line& line : table.lines) {
      // Spaces at the front of a cell are dropped; these are not.
      std::string indent;
      for (size_t i = 0; i < line.depth; ++i) indent += "&nbsp;&nbsp;";
      fmt::format_to(to, "| {}{} | {} | {} |\n", indent, markdown_cell(line.name),
                     unit.number(line.amount.bytes), grouped(line.amount.blocks));
    }
    if (table.more != 0) fmt::format_to(to, "\n... and {} more\n", grouped(table.more));
  }
  return out;
}

Json groups_json(const Report& report, const DeviceReport& device) {
  Json json = Json::object();
  Json& groups = json["groups"] = Json::array();
  for (const Group& group : device.groups) {
    groups.push_back({{"name", group.name},
                      {"bytes", group.amount.bytes},
                      {"blocks", group.amount.blocks},
                      {"categories", group.rows},
                      {"sites", json_of(group.sites)}});
  }
  if (report.options.by != Grouping::module) return json;
  json["modules"] = json_of(device.modules.by_layer)["children"];
  json["modules_summed"] = json_of(device.modules.summed)["children"];
  return json;
}

}  // namespace vramtrack
