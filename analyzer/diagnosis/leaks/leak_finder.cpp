#include "diagnosis/leaks/leak_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "attribution/call_site.h"
#include "diagnosis/leaks/growth_test.h"

namespace vramtrack {
namespace {

// Fewer samples than this cannot carry a test: with 8 of them the smallest possible p-value is
// 0.0005.
constexpr size_t kFewestSamples = 8;
constexpr double kFalseDiscoveryRate = 0.01;
// Below one block of the smallest size in ten steps nobody will ever run out of memory.
constexpr double kLeastBytesPerSample = 51.2;
// Most of what is live was made lately: replaced, not kept.
constexpr double kReplaced = 0.9;

size_t warm_up_of(size_t samples) {
  return std::max<size_t>(2, samples / 10);
}

std::vector<double> after_warm_up(const std::vector<double>& series) {
  const size_t skip = std::min(warm_up_of(series.size()), series.size());
  return {series.begin() + static_cast<std::ptrdiff_t>(skip), series.end()};
}

// Series that belong together under one line of the user's code.
struct Site {
  std::string name;
  int16_t device = -1;
  Memory memory = Memory::none;
  std::vector<const StackSeries*> members;
  std::vector<double> bytes;
  std::vector<double> blocks;
  double young_share = 0;  // weighted by live blocks
  double variance = 0;     // of the bytes at the end, where blocks are sampled
  bool direct = false;
  bool captured = false;
};

std::vector<Site> sites_of(const LiveSeries& series, const Definitions& definitions) {
  std::map<std::tuple<std::string, int16_t, Memory, bool>, Site> by_name;
  for (const StackSeries& stack : series.stacks) {
    const std::string name = call_site(definitions, stack.stack);
    Site& site = by_name[{name, stack.device, stack.memory, stack.captured}];
    if (site.members.empty()) {
      site.name = name;
      site.device = stack.device;
      site.memory = stack.memory;
      site.bytes.assign(series.samples(), 0);
      site.blocks.assign(series.samples(), 0);
    }
    site.members.push_back(&stack);
    site.direct = stack.direct;
    site.captured = stack.captured;
    for (size_t i = 0; i < series.samples(); ++i) {
      site.bytes[i] += stack.bytes[i];
      site.blocks[i] += stack.blocks[i];
    }
    site.young_share += stack.young_share * stack.blocks.back();
    site.variance += stack.variance;
  }
  std::vector<Site> sites;
  for (auto& [key, site] : by_name) {
    if (site.blocks.back() > 0) site.young_share /= site.blocks.back();
    sites.push_back(std::move(site));
  }
  return sites;
}

double rise_of(const std::vector<double>& series) {
  return series.empty() ? 0 : series.back() - series.front();
}

std::vector<double> difference(std::vector<double> series, const std::vector<double>& less) {
  for (size_t i = 0; i < series.size(); ++i) series[i] -= less[i];
  return series;
}

uint64_t step_at(const LiveSeries& series, size_t sample) {
  return sample < series.steps.size() ? series.steps[sample] : sample;
}

void fill_rates(LeakFinding& finding, const LiveSeries& series) {
  finding.bytes_per_step = finding.trend.slope / series.steps_per_sample;
  finding.bytes_per_step_low = finding.trend.slope_low / series.steps_per_sample;
  finding.bytes_per_step_high = finding.trend.slope_high / series.steps_per_sample;
}

void fill_time_to_oom(LeakFinding& finding, const Recording& recording, const LiveSeries& series) {
  for (const DeviceInfo& device : recording.info().devices) {
    const auto used = series.in_use.find(finding.device);
    if (device.ordinal != finding.device || device.total_bytes == 0 ||
        used == series.in_use.end() || finding.bytes_per_step <= 0)
      continue;
    const double room = static_cast<double>(device.total_bytes) - used->second.back();
    finding.steps_to_oom = std::max(room, 0.0) / finding.bytes_per_step;
  }
}

// The library or program that asked the driver.
std::string owner_of(const Recording& recording, const LeakFinding& finding) {
  for (const FrameId id : recording.definitions().stack(finding.stacks.front())) {
    std::string name = file_name(recording.definitions().frame(id).module);
    if (!name.empty() && !is_cuda_library(name)) return name;
  }
  return "a library of CUDA";
}

LeakFinding describe(const Site& site, const Trend& trend, const LiveSeries& series,
                     const Recording& recording) {
  LeakFinding finding;
  finding.kind = site.young_share >= kReplaced ? LeakFinding::Kind::growing_buffer
                 : site.memory == Memory::pinned || site.memory == Memory::registered
                     ? LeakFinding::Kind::host_pinned_growth
                 : site.direct ? LeakFinding::Kind::library_growth
                               : LeakFinding::Kind::live_growth;
  finding.device = site.device;
  finding.memory = site.memory;
  finding.site = site.name;
  finding.trend = trend;
  fill_rates(finding, series);
  std::vector<const StackSeries*> members = site.members;
  std::stable_sort(members.begin(), members.end(), [](const StackSeries* a, const StackSeries* b) {
    return rise_of(a->bytes) > rise_of(b->bytes);
  });
  for (const StackSeries* member : members) finding.stacks.push_back(member->stack);
  finding.live_bytes = site.bytes.back();
  finding.live_blocks = site.blocks.back();
  finding.standard_error = std::sqrt(site.variance);
  const size_t start = start_of_growth(site.bytes);
  finding.first_step = step_at(series, start);
  finding.grown_bytes = site.bytes.back() - site.bytes[start];
  finding.confidence = std::clamp(1.0 - trend.p_value, 0.0, 1.0) * std::fabs(trend.tau);
  finding.why = fmt::format(
      "rises in {:.0f} % of all pairs of {} after the warm-up (p = {:.1g}), and is still rising",
      100 * (1 + trend.tau) / 2,
      series.by_step     ? "steps"
      : series.by_period ? "periods"
                         : "samples",
      trend.p_value);
  if (finding.kind == LeakFinding::Kind::growing_buffer)
    finding.why += "; but what is live was made lately: it is replaced by larger memory, not kept";
  if (finding.kind == LeakFinding::Kind::library_growth)
    finding.why += "; taken straight from the driver by " + owner_of(recording, finding) +
                   ": no tensor lies on it and no Python object holds it";
  fill_time_to_oom(finding, recording, series);
  return finding;
}

// A graph costs what its pool keeps; the blocks of the capture that are still live lie in there.
LeakFinding describe(const GraphPoolSite& site, const Trend& trend, const LiveSeries& series,
                     const Recording& recording) {
  LeakFinding finding;
  finding.kind = LeakFinding::Kind::graph_pools;
  finding.device = site.device;
  finding.memory = Memory::device;
  finding.site = site.name;
  finding.trend = trend;
  fill_rates(finding, series);
  finding.stacks = site.stacks;
  std::vector<const StackSeries*> inside;
  for (const StackSeries& stack : series.stacks)
    if (stack.captured && stack.device == site.device && site.blocks_of.count(stack.stack) != 0)
      inside.push_back(&stack);
  std::stable_sort(inside.begin(), inside.end(), [](const StackSeries* a, const StackSeries* b) {
    return rise_of(a->bytes) > rise_of(b->bytes);
  });
  double live = 0;
  for (const StackSeries* stack : inside) {
    finding.stacks.push_back(stack->stack);
    finding.live_blocks += stack->blocks.back();
    live += stack->bytes.back();
  }
  finding.live_bytes = site.bytes.back();
  const size_t start = start_of_growth(site.bytes);
  finding.first_step = step_at(series, start);
  finding.grown_bytes = site.bytes.back() - site.bytes[start];
  finding.confidence = std::clamp(1.0 - trend.p_value, 0.0, 1.0) * std::fabs(trend.tau);
  finding.why = fmt::format(
      "{:.0f} CUDA graphs keep {:.0f} private {}, and ever more are captured (p = {:.1g}); live "
      "blocks are {:.0f} % of them, the rest serves nothing but a replay",
      site.graphs.back(), site.pools.back(), site.pools.back() == 1 ? "pool" : "pools",
      trend.p_value, 100 * live / std::max(site.bytes.back(), 1.0));
  finding.advice = graph_pool_advice(site);
  finding.graph_pools = site;
  fill_time_to_oom(finding, recording, series);
  return finding;
}

// Nothing of this process explains it, so nothing here can name its line.
LeakFinding describe_outside(int16_t device, const Trend& trend, const LiveSeries& series,
                             const Recording& recording) {
  const std::vector<double>& outside = series.outside.at(device);
  LeakFinding finding;
  finding.kind = LeakFinding::Kind::outside_growth;
  finding.device = device;
  finding.memory = Memory::device;
  finding.trend = trend;
  fill_rates(finding, series);
  const size_t start = start_of_growth(outside);
  finding.first_step = step_at(series, start);
  finding.grown_bytes = outside.back() - outside[start];
  finding.live_bytes = outside.back();
  finding.confidence = std::clamp(1.0 - trend.p_value, 0.0, 1.0) * std::fabs(trend.tau);
  finding.why = fmt::format(
      "measured on the device, beyond all that this process was handed out (p = {:.1g}): other "
      "processes, or what the driver itself keeps for this one",
      trend.p_value);
  finding.advice =
      "see with nvidia-smi which processes hold memory there; `vramtrack leaks FOLDER` finds those "
      "of this job that hold a context and do nothing";
  fill_time_to_oom(finding, recording, series);
  return finding;
}

// Growth of what is reserved without growth of what is allocated: not a leak of the program.
std::optional<LeakFinding> fragmentation_on(int16_t device, const LiveSeries& series,
                                            const Recording& recording) {
  // What graphs keep is told apart.
  const std::vector<double> reserved =
      after_warm_up(difference(series.reserved.at(device), graph_pool_bytes(series, device)));
  const std::vector<double> allocated =
      after_warm_up(difference(series.allocated.at(device), captured_bytes(series, device)));
  const Trend trend = test_growth(reserved);
  if (trend.p_value > kFalseDiscoveryRate || trend.slope_low < kLeastBytesPerSample ||
      growth_is_over(reserved))
    return std::nullopt;
  const double explained = rise_of(allocated) / std::max(rise_of(reserved), 1.0);
  if (explained > 0.5) return std::nullopt;
  LeakFinding finding;
  finding.kind = LeakFinding::Kind::fragmentation;
  finding.device = device;
  finding.memory = Memory::device;
  finding.trend = trend;
  fill_rates(finding, series);
  finding.grown_bytes = rise_of(reserved);
  finding.live_bytes = reserved.back() - allocated.back();
  finding.first_step = step_at(series, start_of_growth(series.reserved.at(device)));
  finding.confidence = (1 - trend.p_value) * (1 - std::clamp(explained, 0.0, 1.0));
  finding.why = fmt::format(
      "reserved memory rises (p = {:.1g}) while allocated memory explains {:.0f} % of it",
      trend.p_value, 100 * std::max(explained, 0.0));
  finding.advice = "no leak: `vramtrack fragmentation` says what keeps it and which settings help";
  fill_time_to_oom(finding, recording, series);
  return finding;
}

}  // namespace

std::string_view name_of(LeakFinding::Kind kind) {
  switch (kind) {
    case LeakFinding::Kind::live_growth:
      return "live growth";
    case LeakFinding::Kind::growing_buffer:
      return "growing buffer";
    case LeakFinding::Kind::fragmentation:
      return "fragmentation";
    case LeakFinding::Kind::host_pinned_growth:
      return "host pinned growth";
    case LeakFinding::Kind::graph_pools:
      return "graph pools";
    case LeakFinding::Kind::outside_growth:
      return "outside growth";
    case LeakFinding::Kind::library_growth:
      return "library growth";
  }
  return "unknown";
}

bool is_leak(LeakFinding::Kind kind) {
  return kind != LeakFinding::Kind::growing_buffer && kind != LeakFinding::Kind::fragmentation &&
         kind != LeakFinding::Kind::outside_growth;
}

namespace {

// Call sites and the pools of graphs, all tested together.
void find_growth(LeakReport& report, const LiveSeries& series, const Recording& recording) {
  const std::vector<Site> sites = sites_of(series, recording.definitions());
  const std::vector<GraphPoolSite> graphs = graph_pool_sites(series, recording.definitions());
  std::vector<Trend> trends;
  std::vector<double> p_values;
  const auto test = [&](const std::vector<double>& bytes) {
    trends.push_back(test_growth(after_warm_up(bytes)));
    p_values.push_back(trends.back().p_value);
  };
  for (const Site& site : sites) test(site.bytes);
  for (const GraphPoolSite& site : graphs) test(site.bytes);
  for (const auto& [device, bytes] : series.outside) test(bytes);
  const std::vector<bool> significant = discoveries(p_values, kFalseDiscoveryRate);
  const auto grows = [&](size_t i, const std::vector<double>& bytes) {
    return significant[i] && trends[i].slope >= kLeastBytesPerSample &&
           !growth_is_over(after_warm_up(bytes));
  };
  size_t number = sites.size() + graphs.size();
  for (const auto& [device, bytes] : series.outside) {
    if (grows(number, bytes))
      report.findings.push_back(describe_outside(device, trends[number], series, recording));
    ++number;
  }
  std::set<std::pair<int16_t, StackId>> in_pools;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const size_t test_number = sites.size() + i;
    if (!grows(test_number, graphs[i].bytes)) continue;
    report.findings.push_back(describe(graphs[i], trends[test_number], series, recording));
    for (const StackId stack : graphs[i].blocks_of) in_pools.insert({graphs[i].device, stack});
  }
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!grows(i, sites[i].bytes)) continue;
    if (sites[i].captured &&
        in_pools.count({sites[i].device, sites[i].members.front()->stack}) != 0)
      continue;  // told with its pools
    LeakFinding finding = describe(sites[i], trends[i], series, recording);
    (finding.kind == LeakFinding::Kind::growing_buffer ? report.not_leaks : report.findings)
        .push_back(std::move(finding));
  }
}

}  // namespace

LeakReport find_leaks(const Recording& recording, const Timeline& timeline) {
  LeakReport report;
  const LiveSeries series = sample_live_bytes(recording, timeline);
  report.by_step = series.by_step;
  report.samples = series.samples();
  report.steps = series.by_period ? series.periods : timeline.steps.size();
  report.by_period = series.by_period;
  report.sampled = recording.info().sample_bytes != 0;
  if (series.by_period)
    report.period_site = call_site(recording.definitions(), series.period_stack);
  report.never_freed = never_freed(recording, timeline);
  if (series.samples() < kFewestSamples) {
    report.notes.push_back(fmt::format(
        "{} samples are too few to tell growth from chance; at least {} steps are needed",
        series.samples(), kFewestSamples + warm_up_of(kFewestSamples)));
    return report;
  }
  report.warm_up_samples = warm_up_of(series.samples());

  report.stacks_tested = series.stacks.size();
  find_growth(report, series, recording);
  for (const auto& [device, unused] : series.reserved)
    if (auto finding = fragmentation_on(device, series, recording))
      report.findings.push_back(std::move(*finding));
  report.holders = holders_of(recording);
  for (std::vector<LeakFinding>* findings : {&report.findings, &report.not_leaks})
    for (LeakFinding& finding : *findings)
      finding.holders = kinds_of_holders(report.holders, finding.stacks);
  const auto faster = [](const LeakFinding& a, const LeakFinding& b) {
    return a.bytes_per_step > b.bytes_per_step;
  };
  std::stable_sort(report.findings.begin(), report.findings.end(), faster);
  std::stable_sort(report.not_leaks.begin(), report.not_leaks.end(), faster);
  return report;
}

}  // namespace vramtrack
