// A growth table as text, with a plot.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/growth_answers.h"
#include "report/growth_table.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

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

// "linear, 0.1 %", or why there is no law; `part`: the row is not there at every point.
std::string verdict_on(const GrowthRow& row) {
  if (row.law.tested && !row.law.explains())
    return fmt::format("no law ({:.0f} % off)", 100 * row.law.worst_relative_error);
  const bool both = row.law.linear > 0 && row.law.quadratic > 0;
  std::string text = row.law.tested ? fmt::format("{}, {:.1f} %", both ? "x + x²" : row.law.shape(),
                                                  100 * row.law.worst_relative_error)
                                    : "untested";
  return row.absent_at.empty() ? text : text + ", part";
}

void append_rows(std::string& out, std::string_view title, const GrowthTable& table,
                 const std::vector<GrowthRow>& rows, size_t top) {
  double largest = 0;
  for (const GrowthRow& row : rows) largest = std::max(largest, row.points.back().bytes);
  const Unit unit = unit_for(static_cast<uint64_t>(largest));
  const size_t columns = std::min<size_t>(table.xs.size(), 4);  // the largest four fit
  const size_t first = table.xs.size() - columns;
  out += fmt::format("\n{:<25}", fmt::format("{} ({})", title, unit.name));
  for (size_t i = first; i < table.xs.size(); ++i) out += fmt::format("{:>9g}", table.xs[i]);
  out += fmt::format("{:>7}  law, error\n", "exp.");
  size_t shown = 0;
  for (const GrowthRow& row : rows) {
    if (shown++ == top) {
      out += fmt::format("  ... {} more\n", rows.size() - top);
      break;
    }
    out += fmt::format("  {:<23}", shortened(row.name, 23));
    for (size_t i = first; i < row.points.size(); ++i)
      out += fmt::format("{:>9}", unit.number(static_cast<uint64_t>(row.points[i].bytes)));
    out += fmt::format("{:>7}  {}\n", exponent_text(row), verdict_on(row));
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
    if (row.law.explains())
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

std::string share_text(const GrowthTable& table, size_t point) {
  const GrowthRow* most = nullptr;
  for (const GrowthRow& row : table.categories)
    if (most == nullptr || row.points[point].bytes > most->points[point].bytes) most = &row;
  if (most == nullptr || table.peak.points[point].bytes <= 0) return {};
  return fmt::format("{} ({:.0f} %) at {:g}", most->name,
                     100 * most->points[point].bytes / table.peak.points[point].bytes,
                     table.xs[point]);
}

void append_doublings(std::string& out, const GrowthTable& table) {
  std::string ratios;
  for (const double ratio : table.peak.doublings)
    ratios += fmt::format("{}{:.2f}", ratios.empty() ? "" : ", ", ratio);
  if (!ratios.empty())
    out += fmt::format("twice the {}: allocated times {}\n", table.variable, ratios);
  out += fmt::format("most of it: {}, {}\n", share_text(table, 0),
                     share_text(table, table.xs.size() - 1));
}

// Those where most is at stake; --json has them all.
void append_crossings(std::string& out, const GrowthTable& table) {
  constexpr size_t kShown = 6;
  const auto stake = [&table](const GrowthCrossing& c) {
    for (const GrowthRow& row : table.categories)
      if (row.name == c.overtaking) return row.law.at(c.x) / table.peak.law.at(c.x);
    return 0.0;
  };
  std::vector<GrowthCrossing> shown = table.crossings;
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const auto& a, const auto& b) { return stake(a) > stake(b); });
  shown.resize(std::min(shown.size(), kShown));
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.x < b.x; });
  for (const GrowthCrossing& c : shown)
    out += fmt::format("{} overtakes {} at {} = {:.0f}\n", c.overtaking, c.overtaken,
                       table.variable, c.x);
}

void append_capacity(std::string& out, const GrowthTable& table, uint64_t capacity) {
  const auto fit = largest_fit(table, static_cast<double>(capacity));
  if (!fit) {
    out += fmt::format("what fits {} cannot be told from these points\n", quantity(capacity));
    return;
  }
  if (fit->unlimited) {
    out += fmt::format("memory does not grow with {}: any value fits {}\n", table.variable,
                       quantity(capacity));
    return;
  }
  out += fmt::format("{} holds {} up to {:.0f} to {:.0f} [extrapolated], {}\n", quantity(capacity),
                     table.variable, std::floor(fit->surely), std::floor(fit->at_most),
                     table.outside > 0 ? fmt::format("beside {} measured outside",
                                                     quantity(static_cast<uint64_t>(table.outside)))
                                       : "before context and libraries");
  out += "  the first with as much cached as was seen, the second with nothing wasted\n";
  if (fit->farthest > 8)
    out += fmt::format("  that is {:.0f} times the largest {} seen: record one nearer to it\n",
                       fit->farthest, table.variable);
}

void append_answers(std::string& out, const GrowthTable& table, uint64_t capacity,
                    const std::vector<double>& asked) {
  out += '\n';
  append_doublings(out, table);
  append_crossings(out, table);
  for (const GrowthBound& bound : table.bounds)
    out += fmt::format("at {} = {:g} it ran out: at least {} allocated\n", table.variable, bound.x,
                       quantity(static_cast<uint64_t>(bound.at_least)));
  for (const double x : asked) {
    const auto prediction = predict_peak(table, x);
    if (prediction)
      out += fmt::format(
          "at {} = {:g} allocated peaks at {} [{}]\n", table.variable, x, range_text(*prediction),
          prediction->tested ? "extrapolated" : "extrapolated by a law that nothing tests");
    else
      out += fmt::format(
          "at {} = {:g}: {}\n", table.variable, x,
          table.peak.law.tested ? "no law explains the points" : "two points are not extrapolated");
  }
  if (capacity != 0) append_capacity(out, table, capacity);
}

}  // namespace

std::string growth_text(const GrowthTable& table, uint64_t capacity,
                        const std::vector<double>& asked, size_t top) {
  std::string out = fmt::format("{}growth with {} over {} recordings, GPU {}, at {}\n",
                                table.simulated ? "simulated: " : "", table.variable,
                                table.xs.size(), table.device, table.moments.back());
  if (table.peak.law.explains()) out += fmt::format("allocated = {}\n", law_text(table.peak));
  for (const std::string& note : table.notes) out += fmt::format("note: {}\n", note);
  append_rows(out, "total", table, {table.peak, table.in_use}, 2);
  if (!table.phases.empty()) append_rows(out, "by phase", table, table.phases, 8);
  out += "\nrows: each at its own highest, whenever that is; they need not add up\n";
  append_rows(out, "by category", table, table.categories, 20);
  append_rows(out, "by site", table, table.sites, top);
  append_plot(out, table);
  append_answers(out, table, capacity, asked);
  return out;
}

}  // namespace vramtrack
