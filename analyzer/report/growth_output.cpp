// A growth table as text, with a plot, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/growth_table.h"
#include "report/units.h"

namespace vramtrack {
namespace {

constexpr size_t kWidth = 92;

std::string exponent_text(const GrowthRow& row) {
  if (!row.exponent) return "-";
  return row.exponent->value == 0 ? "0" : fmt::format("{:.2f}", row.exponent->value);
}

std::string law_text(const GrowthRow& row) {
  const GrowthLaw& law = row.law;
  std::string text;
  const auto term = [&text](double coefficient, std::string_view unit) {
    if (coefficient == 0) return;
    if (!text.empty()) text += " + ";
    text += quantity(static_cast<uint64_t>(std::llround(coefficient)));
    text += unit;
  };
  term(law.constant, "");
  term(law.linear, " x");
  if (law.quadratic > 0 && law.quadratic < 1)
    text += fmt::format("{}{:.3g} bytes x²", text.empty() ? "" : " + ", law.quadratic);
  else
    term(law.quadratic, " x²");
  return text.empty() ? std::string("0") : text;
}

void append_rows(std::string& out, std::string_view title, const GrowthTable& table,
                 const std::vector<GrowthRow>& rows, size_t top) {
  double largest = 0;
  for (const GrowthRow& row : rows) largest = std::max(largest, row.points.back().bytes);
  const Unit unit = unit_for(static_cast<uint64_t>(largest));
  const size_t columns = std::min<size_t>(table.xs.size(), 4);  // the largest four fit
  const size_t first = table.xs.size() - columns;
  out += fmt::format("\n{:<26}", fmt::format("{} ({})", title, unit.name));
  for (size_t i = first; i < table.xs.size(); ++i) out += fmt::format("{:>10g}", table.xs[i]);
  out += fmt::format("{:>7}  law, error\n", "exp.");
  size_t shown = 0;
  for (const GrowthRow& row : rows) {
    if (shown++ == top) {
      out += fmt::format("  ... {} more\n", rows.size() - top);
      break;
    }
    out += fmt::format("  {:<24}", shortened(row.name, 24));
    for (size_t i = first; i < row.points.size(); ++i)
      out += fmt::format("{:>10}", unit.number(static_cast<uint64_t>(row.points[i].bytes)));
    out += fmt::format("{:>7}  {}\n", exponent_text(row),
                       row.law.tested ? fmt::format("{}, {:.1f} %", row.law.shape(),
                                                    100 * row.law.worst_relative_error)
                                      : "untested");
  }
}

// Bytes against x, both linear: one column per character, a letter per category.
void append_plot(std::string& out, const GrowthTable& table) {
  constexpr size_t kColumns = 64;
  constexpr size_t kRows = 14;
  const size_t series = std::min<size_t>(table.categories.size(), 6);
  if (series == 0) return;
  const double most_x = table.xs.back();
  double most_y = 1;
  for (size_t s = 0; s < series; ++s)
    for (const GrowthPoint& point : table.categories[s].points)
      most_y = std::max(most_y, point.bytes);
  std::vector<std::string> canvas(kRows, std::string(kColumns, ' '));
  for (size_t s = series; s-- > 0;) {
    const GrowthRow& row = table.categories[s];
    const auto put = [&](double x, double y, char mark) {
      const auto column = static_cast<size_t>(std::lround(x / most_x * (kColumns - 1)));
      const double height = std::clamp(y / most_y, 0.0, 1.0);
      const auto line = kRows - 1 - static_cast<size_t>(std::lround(height * (kRows - 1)));
      canvas[line][std::min(column, kColumns - 1)] = mark;
    };
    if (row.law.tested)
      for (size_t c = 0; c < kColumns; ++c) {
        const double x = most_x * static_cast<double>(c) / (kColumns - 1);
        if (x >= table.xs.front()) put(x, row.law.at(x), '.');
      }
    for (const GrowthPoint& point : row.points)
      put(point.x, point.bytes, static_cast<char>('A' + s));
  }
  const Unit unit = unit_for(static_cast<uint64_t>(most_y));
  out += '\n';
  for (size_t r = 0; r < kRows; ++r) {
    const double y = most_y * static_cast<double>(kRows - 1 - r) / (kRows - 1);
    out += fmt::format("{:>9} |{}\n", unit.number(static_cast<uint64_t>(y)), canvas[r]);
  }
  out += fmt::format("{:>9} +{}\n{:>10} {:<32g}{:>32g}\n", unit.name, std::string(kColumns, '-'),
                     table.variable, 0.0, most_x);
  for (size_t s = 0; s < series; ++s)
    out += fmt::format("{}{} {}", s % 3 == 0 ? (s == 0 ? "  " : "\n  ") : "   ",
                       static_cast<char>('A' + s), table.categories[s].name);
  out += '\n';
}

std::string range_text(const GrowthPrediction& p) {
  return fmt::format("{} ({} to {})", quantity(static_cast<uint64_t>(p.bytes)),
                     quantity(static_cast<uint64_t>(std::max(p.low, 0.0))),
                     quantity(static_cast<uint64_t>(p.high)));
}

void append_answers(std::string& out, const GrowthTable& table, uint64_t capacity,
                    const std::vector<double>& asked) {
  out += '\n';
  for (const GrowthCrossing& c : table.crossings)
    out += fmt::format("{} overtakes {} at {} = {:.0f}\n", c.overtaking, c.overtaken,
                       table.variable, c.x);
  for (const double x : asked) {
    const auto prediction = predict_growth(table.peak.points, x);
    out += prediction
               ? fmt::format("at {} = {:g} allocated peaks at {} [extrapolated]\n", table.variable,
                             x, range_text(*prediction))
               : fmt::format("at {} = {:g}: two points are not extrapolated\n", table.variable, x);
  }
  if (capacity == 0) return;
  if (!table.in_use.law.tested) {
    out += fmt::format("what fits {} cannot be told from these points\n", quantity(capacity));
    return;
  }
  const auto longest = largest_that_fits(table.in_use.law, static_cast<double>(capacity));
  const double slack = 1 + table.in_use.law.worst_relative_error;
  const auto surely = largest_that_fits(table.in_use.law, static_cast<double>(capacity) / slack);
  if (!longest)
    out += fmt::format("{} does not grow with {}: any value fits {}\n", "in use", table.variable,
                       quantity(capacity));
  else
    out += fmt::format(
        "{} holds {} up to {:.0f} (surely {:.0f}), before context and libraries [extrapolated]\n",
        quantity(capacity), table.variable, std::floor(*longest), std::floor(surely.value_or(0)));
}

nlohmann::ordered_json row_json(const GrowthRow& row) {
  nlohmann::ordered_json json = {{"name", row.name}};
  json["bytes"] = nlohmann::ordered_json::array();
  for (const GrowthPoint& point : row.points)
    json["bytes"].push_back(static_cast<uint64_t>(point.bytes));
  json["law"] = {{"constant_bytes", row.law.constant},
                 {"linear_bytes", row.law.linear},
                 {"quadratic_bytes", row.law.quadratic},
                 {"shape", row.law.shape()},
                 {"worst_relative_error", row.law.worst_relative_error},
                 {"tested", row.law.tested}};
  if (row.exponent)
    json["exponent"] = {
        {"value", row.exponent->value}, {"low", row.exponent->low}, {"high", row.exponent->high}};
  else
    json["exponent"] = nullptr;
  json["doubling_ratios"] = row.doublings;
  return json;
}

}  // namespace

std::string growth_text(const GrowthTable& table, uint64_t capacity,
                        const std::vector<double>& asked, size_t top) {
  std::string out = fmt::format("{}growth with {} over {} recordings, GPU {}, at {}\n",
                                table.simulated ? "simulated: " : "", table.variable,
                                table.xs.size(), table.device, table.moments.back());
  out += fmt::format("allocated = {}\n", law_text(table.peak));
  for (const std::string& note : table.notes) out += fmt::format("note: {}\n", note);
  append_rows(out, "total", table, {table.peak, table.in_use}, 2);
  out += "\nrows: each where it is largest, at the peak or at the peak of a phase\n";
  append_rows(out, "by category", table, table.categories, 20);
  append_rows(out, "by site", table, table.sites, top);
  append_plot(out, table);
  append_answers(out, table, capacity, asked);
  return out;
}

nlohmann::ordered_json growth_json(const GrowthTable& table, uint64_t capacity,
                                   const std::vector<double>& asked) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.growth/1"},
                                 {"variable", table.variable},
                                 {"device", table.device},
                                 {"simulated", table.simulated},
                                 {"files", table.paths},
                                 {"x", table.xs},
                                 {"moments", table.moments},
                                 {"activities", table.activities},
                                 {"notes", table.notes},
                                 {"allocated", row_json(table.peak)},
                                 {"in_use", row_json(table.in_use)}};
  json["categories"] = nlohmann::ordered_json::array();
  for (const GrowthRow& row : table.categories) json["categories"].push_back(row_json(row));
  json["sites"] = nlohmann::ordered_json::array();
  for (const GrowthRow& row : table.sites) json["sites"].push_back(row_json(row));
  json["crossings"] = nlohmann::ordered_json::array();
  for (const GrowthCrossing& c : table.crossings)
    json["crossings"].push_back(
        {{"overtaking", c.overtaking}, {"overtaken", c.overtaken}, {"x", c.x}});
  json["predictions"] = nlohmann::ordered_json::array();
  for (const double x : asked) {
    const auto p = predict_growth(table.peak.points, x);
    nlohmann::ordered_json entry = {{"x", x}};
    if (p)
      entry.update({{"bytes", p->bytes}, {"low_bytes", p->low}, {"high_bytes", p->high}});
    else
      entry["bytes"] = nullptr;
    json["predictions"].push_back(std::move(entry));
  }
  if (capacity != 0) {
    const auto longest = table.in_use.law.tested
                             ? largest_that_fits(table.in_use.law, static_cast<double>(capacity))
                             : std::nullopt;
    json["capacity_bytes"] = capacity;
    json["largest_x_that_fits"] = longest ? nlohmann::ordered_json(*longest) : nullptr;
  }
  return json;
}

}  // namespace vramtrack
