// A difference as text and as JSON.
#include <fmt/format.h>

#include <cstdlib>

#include "report/difference.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

uint64_t magnitude(int64_t bytes) {
  return static_cast<uint64_t>(std::llabs(bytes));
}

uint64_t largest_of(const std::vector<Change>& changes) {
  uint64_t most = 0;
  for (const Change& change : changes)
    most = std::max({most, change.before.bytes, change.after.bytes});
  return most;
}

void append_table(std::string& out, std::string_view title, const std::vector<Change>& changes,
                  size_t top, bool counts) {
  if (changes.empty()) return;
  const Unit unit = unit_for(largest_of(changes));
  out += fmt::format("\n{:<44}{:>12}{:>12}{:>12}{}\n", fmt::format("{} ({})", title, unit.name),
                     "before", "after", "change", counts ? "      blocks" : "");
  size_t shown = 0;
  size_t hidden = 0;
  int64_t hidden_bytes = 0;
  for (const Change& change : changes) {
    if (change.bytes() == 0 && counts) continue;
    if (shown == top) {
      ++hidden;
      hidden_bytes += change.bytes();
      continue;
    }
    ++shown;
    out += fmt::format("  {:<42}{:>12}{:>12}{:>12}", shortened(change.name, 42),
                       unit.number(change.before.bytes), unit.number(change.after.bytes),
                       unit.signed_number(change.bytes()));
    if (counts) {
      const auto blocks =
          static_cast<int64_t>(change.after.blocks) - static_cast<int64_t>(change.before.blocks);
      out += fmt::format("{:>+12}", blocks);
    }
    out += '\n';
    if (!change.moved_from.empty())
      out += fmt::format("      was {}\n", shortened(change.moved_from, kReportWidth - 10));
  }
  if (shown == 0) out += "  (nothing changed)\n";
  if (hidden != 0)
    out += fmt::format("  {:<66}{:>12}\n", fmt::format("... {} more", hidden),
                       unit.signed_number(hidden_bytes));
}

// What changed the peak most, in one sentence.
std::string verdict(const DeviceDifference& d) {
  const Change* top = nullptr;
  for (const Change& change : d.categories)
    if (change.name.rfind("cached", 0) != 0 &&
        (top == nullptr || std::llabs(change.bytes()) > std::llabs(top->bytes())))
      top = &change;
  std::string text = fmt::format("allocated {} by {}", d.peak_bytes < 0 ? "falls" : "rises",
                                 quantity(magnitude(d.peak_bytes)));
  if (d.peak_bytes == 0) text = "allocated does not change";
  if (top != nullptr && top->bytes() != 0)
    text += fmt::format("; most of it: {} {}{}", top->name, top->bytes() < 0 ? "-" : "+",
                        quantity(magnitude(top->bytes())));
  const Change& cached = d.totals[2];
  const bool apart = cached.bytes() != 0 && (cached.bytes() > 0) != (d.peak_bytes > 0) &&
                     magnitude(cached.bytes()) >= 1024 * 1024;
  if (apart)
    text += fmt::format(
        ";\n  what is cached moves the other way, by {}{}: that is the allocator, not the program",
        cached.bytes() < 0 ? "-" : "+", quantity(magnitude(cached.bytes())));
  return text;
}

nlohmann::ordered_json changes_json(const std::vector<Change>& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Change& change : changes) {
    nlohmann::ordered_json entry = {{"name", change.name},
                                    {"before_bytes", change.before.bytes},
                                    {"after_bytes", change.after.bytes},
                                    {"change_bytes", change.bytes()},
                                    {"before_blocks", change.before.blocks},
                                    {"after_blocks", change.after.blocks}};
    if (!change.row.empty()) entry["category"] = change.row;
    if (!change.moved_from.empty()) entry["moved_from"] = change.moved_from;
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::ordered_json moment_json(const Moment& moment) {
  nlohmann::ordered_json json = {{"name", moment.name},
                                 {"time_s", static_cast<double>(moment.time_ns) * 1e-9}};
  if (moment.step != kNoStep) json["step"] = moment.step;
  return json;
}

}  // namespace

std::string difference_text(const Difference& difference, size_t top) {
  std::string out =
      fmt::format("before  {}{}\nafter   {}{}\n", difference.before,
                  difference.simulated_before ? "  (simulated)" : "", difference.after,
                  difference.simulated_after ? "  (simulated)" : "");
  for (const std::string& note : difference.notes) out += fmt::format("note    {}\n", note);
  for (const DeviceDifference& d : difference.devices) {
    out += fmt::format("\nGPU {}, {} against {}: {}\n", d.device, d.before_moment.name,
                       d.after_moment.name, verdict(d));
    append_table(out, "totals", d.totals, d.totals.size(), false);
    append_table(out, "by category", d.categories, top, true);
    append_table(out, "by module", d.modules, top, true);
    append_table(out, "by site", d.sites, top, true);
  }
  return out;
}

nlohmann::ordered_json difference_json(const Difference& difference) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.diff/1"},
                                 {"before", difference.before},
                                 {"after", difference.after},
                                 {"simulated_before", difference.simulated_before},
                                 {"simulated_after", difference.simulated_after},
                                 {"notes", difference.notes}};
  json["devices"] = nlohmann::ordered_json::array();
  for (const DeviceDifference& d : difference.devices) {
    json["devices"].push_back({{"device", d.device},
                               {"before_moment", moment_json(d.before_moment)},
                               {"after_moment", moment_json(d.after_moment)},
                               {"peak_change_bytes", d.peak_bytes},
                               {"totals", changes_json(d.totals)},
                               {"categories", changes_json(d.categories)},
                               {"modules", changes_json(d.modules)},
                               {"sites", changes_json(d.sites)}});
  }
  return json;
}

}  // namespace vramtrack
