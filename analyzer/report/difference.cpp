#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <map>
#include <set>

#include "report/build_report.h"

namespace vramtrack {
namespace {

std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of("/\\") + 1);
}

// What a line is called when its number does not matter.
std::string place_of(const CallSite& site) {
  if (site.frame.function.empty() && site.frame.file.empty()) return site.name;
  return base_name(site.frame.file) + "\n" + site.frame.function;
}

bool by_line(const CallSite* a, const CallSite* b) {
  return a->frame.line < b->frame.line;
}

void sort_by_change(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::llabs(a.bytes()) > std::llabs(b.bytes());
  });
}

// Lines of one function: those with the same number are the same, the rest pair up in order, since
// an edit moves all lines below it alike.
void pair_lines(std::vector<const CallSite*> before, std::vector<const CallSite*> after,
                std::vector<Change>& changes) {
  std::sort(before.begin(), before.end(), by_line);
  std::sort(after.begin(), after.end(), by_line);
  const auto emit = [&changes](const CallSite* from, const CallSite* to) {
    assert(from != nullptr || to != nullptr);
    Change change;
    change.name = to != nullptr ? to->name : from->name;
    change.row = to != nullptr ? to->row : from->row;
    if (from != nullptr) change.before = from->amount;
    if (to != nullptr) change.after = to->amount;
    if (from != nullptr && to != nullptr && from->name != to->name) change.moved_from = from->name;
    changes.push_back(std::move(change));
  };
  std::set<uint32_t> common;
  for (const CallSite* a : before)
    for (const CallSite* b : after)
      if (a->frame.line == b->frame.line && common.insert(a->frame.line).second) emit(a, b);
  const auto is_common = [&common](const CallSite* s) { return common.contains(s->frame.line); };
  before.erase(std::remove_if(before.begin(), before.end(), is_common), before.end());
  after.erase(std::remove_if(after.begin(), after.end(), is_common), after.end());
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i)
    emit(i < before.size() ? before[i] : nullptr, i < after.size() ? after[i] : nullptr);
}

std::vector<Change> compare_groups(const std::map<std::string, Amount>& before,
                                   const std::map<std::string, Amount>& after) {
  std::vector<Change> changes;
  std::set<std::string> names;
  for (const auto& [name, unused] : before) names.insert(name);
  for (const auto& [name, unused] : after) names.insert(name);
  for (const std::string& name : names) {
    Change change;
    change.name = name;
    if (const auto found = before.find(name); found != before.end()) change.before = found->second;
    if (const auto found = after.find(name); found != after.end()) change.after = found->second;
    if (change.before.bytes != 0 || change.after.bytes != 0) changes.push_back(std::move(change));
  }
  sort_by_change(changes);
  return changes;
}

// Sub-rows stand for themselves and are taken out of their category, so that nothing counts twice.
std::map<std::string, Amount> rows_of(const CategoryTable& table) {
  std::map<std::string, Amount> rows = table.sub_rows;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    const std::string name(kCategoryNames[i]);
    Amount own = table.categories[i];
    for (const auto& [row, amount] : table.sub_rows) {
      if (row.rfind(name + "/", 0) != 0) continue;
      own.bytes -= std::min(own.bytes, amount.bytes);
      own.blocks -= std::min(own.blocks, amount.blocks);
    }
    rows[name] = own;
  }
  return rows;
}

std::map<std::string, Amount> named(const std::vector<Group>& groups) {
  std::map<std::string, Amount> amounts;
  for (const Group& group : groups) amounts[group.name] = group.amount;
  return amounts;
}

Change total(std::string name, uint64_t before, uint64_t after) {
  return Change{std::move(name), {}, {}, Amount{before, 0}, Amount{after, 0}};
}

uint64_t outside_bytes(const Outside& outside) {
  if (!outside.measured) return 0;
  const int64_t sum =
      static_cast<int64_t>(outside.context + outside.last.libraries) + outside.residual;
  return sum > 0 ? static_cast<uint64_t>(sum) : 0;
}

DeviceDifference compare_devices(const DeviceReport& before, const DeviceReport& after) {
  DeviceDifference d;
  d.device = after.device;
  d.before_moment = before.moment.moment;
  d.after_moment = after.moment.moment;
  const MomentView& a = before.moment;
  const MomentView& b = after.moment;
  d.peak_bytes = static_cast<int64_t>(b.allocated) - static_cast<int64_t>(a.allocated);
  d.totals = {
      total("in use", a.totals.in_use, b.totals.in_use),
      total("allocated", a.allocated, b.allocated),
      total("cached", a.totals.cached(), b.totals.cached()),
      total("outside", outside_bytes(a.outside), outside_bytes(b.outside)),
      total("reserved high-water mark", before.course.most_reserved, after.course.most_reserved)};
  d.categories = compare_groups(rows_of(a.categories), rows_of(b.categories));
  d.modules = compare_groups(named(before.groups), named(after.groups));
  d.sites = match_sites(before.sites, after.sites);
  return d;
}

}  // namespace

std::vector<Change> match_sites(const std::vector<CallSite>& before,
                                const std::vector<CallSite>& after) {
  std::map<std::string, std::pair<std::vector<const CallSite*>, std::vector<const CallSite*>>>
      places;
  for (const CallSite& site : before) places[place_of(site)].first.push_back(&site);
  for (const CallSite& site : after) places[place_of(site)].second.push_back(&site);
  std::vector<Change> changes;
  for (const auto& [place, pair] : places) pair_lines(pair.first, pair.second, changes);
  sort_by_change(changes);
  return changes;
}

Difference compare(const Recording& before, const Recording& after, const std::string& at) {
  const ReportOptions options{.at = at, .by = Grouping::module, .category = {}, .top = 0};
  const Report a = build_report(before, options);
  const Report b = build_report(after, options);
  Difference difference;
  difference.before = before.info().path;
  difference.after = after.info().path;
  difference.simulated_before = before.info().simulated;
  difference.simulated_after = after.info().simulated;
  for (const DeviceReport& device : b.devices) {
    const auto same =
        std::find_if(a.devices.begin(), a.devices.end(),
                     [&](const DeviceReport& other) { return other.device == device.device; });
    if (same == a.devices.end()) {
      difference.notes.push_back(
          fmt::format("device {} appears only in {}", device.device, difference.after));
    } else {
      difference.devices.push_back(compare_devices(*same, device));
    }
  }
  if (before.info().simulated != after.info().simulated)
    difference.notes.emplace_back("one of the two ran on the simulated GPU, the other did not");
  return difference;
}

}  // namespace vramtrack
