#include "report/leak_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "attribution/call_site.h"
#include "report/text_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

std::string_view per(const LeakReport& report) {
  return report.by_step ? "step" : report.by_period ? "period" : "sample";
}

void append_holders(std::string& out, const LeakFinding& finding) {
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < finding.holders.size() && i < kMost; ++i)
    out += wrapped(fmt::format("   held by {}", finding.holders[i].chain), 6) + "\n";
  if (finding.holders.size() > kMost)
    out += fmt::format("   and in {} more ways: leaks --holders\n", finding.holders.size() - kMost);
}

void append_graph_pools(std::string& out, const GraphPoolSite& site) {
  constexpr size_t kMost = 4;
  const std::vector<GraphPool>& pools = site.last_pools;
  for (size_t i = 0; i < pools.size() && i < kMost; ++i)
    out += fmt::format("   pool at {:#x}: {} in {} for {}\n", pools[i].address,
                       quantity(pools[i].bytes), counted(pools[i].segments, "segment"),
                       counted(pools[i].graphs, "graph"));
  if (pools.size() > kMost)
    out += fmt::format("   and {} pools of {} to {}\n", pools.size() - kMost,
                       quantity(pools.back().bytes), quantity(pools[kMost].bytes));
}

void append_finding(std::string& out, size_t number, const LeakFinding& finding,
                    const LeakReport& report, const Recording& recording) {
  const std::string what = !finding.site.empty() ? finding.site
                           : finding.kind == LeakFinding::Kind::outside_growth
                               ? "memory outside this process"
                               : "reserved memory";
  out += fmt::format("\n{}. {}: {}\n", number, what, name_of(finding.kind));
  const std::string held =
      finding.live_blocks > 0 ? fmt::format("held now in {:.0f} blocks", finding.live_blocks)
      : finding.kind == LeakFinding::Kind::fragmentation ? "reserved now and not used"
                                                         : "now";
  out += fmt::format(
      "   {} per {} ({} to {}), {} since {} {}, {} {}\n", rounded_quantity(finding.bytes_per_step),
      per(report), rounded_quantity(finding.bytes_per_step_low),
      rounded_quantity(finding.bytes_per_step_high), rounded_quantity(finding.grown_bytes),
      per(report), finding.first_step, rounded_quantity(finding.live_bytes), held);
  if (finding.standard_error > 0)
    out += fmt::format("   sampled: what is held is estimated, standard error {}\n",
                       rounded_quantity(finding.standard_error));
  if (finding.steps_to_oom)
    out += fmt::format("   at this rate the device is full in {:.0f} {}s\n", *finding.steps_to_oom,
                       per(report));
  out +=
      wrapped(fmt::format("   {} (confidence {:.2f})", finding.why, finding.confidence), 6) + "\n";
  if (finding.graph_pools) append_graph_pools(out, *finding.graph_pools);
  if (!finding.advice.empty()) out += wrapped("   to do: " + finding.advice, 6) + "\n";
  append_holders(out, finding);
  if (finding.stacks.empty()) return;
  size_t shown = 0;
  for (const FrameId id : recording.definitions().stack(finding.stacks.front())) {
    const Frame& frame = recording.definitions().frame(id);
    if (!frame.python && !is_user_frame(frame)) continue;
    out += fmt::format("     {}\n", shortened(describe(frame), 84));
    if (++shown == 6) break;
  }
}

void append_never_freed(std::string& out, const LeakReport& report, size_t top) {
  std::map<std::string, uint64_t> known;
  size_t shown = 0;
  out += "\nlive at the end, by site (not leaks by themselves)\n";
  for (const NeverFreed& entry : report.never_freed) {
    if (!entry.known_good.empty()) {
      known[entry.known_good] += entry.bytes;
      continue;
    }
    if (shown++ >= top) continue;
    out += fmt::format("  {:>12}  {:>6} blocks  {}\n", quantity(entry.bytes), entry.blocks,
                       shortened(entry.site, 60));
  }
  if (shown == 0) out += "  (nothing)\n";
  if (shown > top) out += fmt::format("  ... {} more sites\n", shown - top);
  for (const auto& [what, bytes] : known)
    out += fmt::format("  {:>12}  known good: {}\n", quantity(bytes), what);
}

nlohmann::ordered_json frames_json(const Recording& recording, StackId stack) {
  nlohmann::ordered_json frames = nlohmann::ordered_json::array();
  for (const FrameId id : recording.definitions().stack(stack)) {
    const Frame& frame = recording.definitions().frame(id);
    frames.push_back({{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
  }
  return frames;
}

nlohmann::ordered_json graph_pools_json(const GraphPoolSite& site) {
  nlohmann::ordered_json json = {{"graphs", site.graphs.back()},
                                 {"pools", site.pools.back()},
                                 {"list", nlohmann::ordered_json::array()}};
  for (const GraphPool& pool : site.last_pools)
    json["list"].push_back({{"address", pool.address},
                            {"bytes", pool.bytes},
                            {"segments", pool.segments},
                            {"graphs", pool.graphs}});
  return json;
}

nlohmann::ordered_json finding_json(const LeakFinding& finding, const Recording& recording) {
  nlohmann::ordered_json json = {{"kind", name_of(finding.kind)},
                                 {"leak", is_leak(finding.kind)},
                                 {"device", finding.device},
                                 {"site", finding.site},
                                 {"bytes_per_step", finding.bytes_per_step},
                                 {"bytes_per_step_low", finding.bytes_per_step_low},
                                 {"bytes_per_step_high", finding.bytes_per_step_high},
                                 {"grown_bytes", finding.grown_bytes},
                                 {"live_bytes", finding.live_bytes},
                                 {"live_blocks", finding.live_blocks},
                                 {"standard_error_bytes", finding.standard_error},
                                 {"first_step", finding.first_step},
                                 {"p_value", finding.trend.p_value},
                                 {"confidence", finding.confidence},
                                 {"why", finding.why}};
  json["steps_to_oom"] = finding.steps_to_oom ? nlohmann::ordered_json(*finding.steps_to_oom)
                                              : nlohmann::ordered_json(nullptr);
  json["holders"] = nlohmann::ordered_json::array();
  for (const Holder& holder : finding.holders)
    json["holders"].push_back({{"chain", holder.chain}, {"said", holder.said}});
  if (!finding.advice.empty()) json["advice"] = finding.advice;
  if (finding.graph_pools) json["graph_pools"] = graph_pools_json(*finding.graph_pools);
  if (!finding.stacks.empty()) json["frames"] = frames_json(recording, finding.stacks.front());
  return json;
}

}  // namespace

std::string leak_text(const LeakReport& report, const Recording& recording, size_t top) {
  std::string out = recording.info().simulated ? "simulated: " : "";
  if (report.sampled) out += "sampled: ";
  const std::string basis =
      report.by_step ? fmt::format("{} steps, {} samples", report.steps, report.samples)
      : report.by_period
          ? fmt::format("no steps in this recording: {} periods found", report.steps)
          : fmt::format("no steps in this recording: {} quietest moments", report.samples);
  const auto leaks = std::count_if(report.findings.begin(), report.findings.end(),
                                   [](const LeakFinding& f) { return is_leak(f.kind); });
  if (report.findings.empty())
    out += fmt::format("no leak found ({}, {} stacks tested)\n", basis, report.stacks_tested);
  else
    out += fmt::format("{} found{} ({}, {} stacks tested, the first {} samples are warm-up)\n",
                       leaks == 0   ? "no leak"
                       : leaks == 1 ? "1 leak"
                                    : fmt::format("{} leaks", leaks),
                       leaks == 0 ? ", but memory grows" : "", basis, report.stacks_tested,
                       report.warm_up_samples);
  if (report.by_period)
    out += wrapped("note: each period begins with a block of " + report.period_site, 6) + "\n";
  for (const std::string& note : report.notes) out += paragraph("note: ", note);
  for (const std::string& note : recording.info().notes) out += paragraph("note: ", note);
  size_t number = 0;
  for (const LeakFinding& finding : report.findings) {
    if (number == top) {
      out += fmt::format("\n... {} more\n", report.findings.size() - top);
      break;
    }
    append_finding(out, ++number, finding, report, recording);
  }
  if (!report.not_leaks.empty()) out += "\ngrowth that is no leak\n";
  for (const LeakFinding& finding : report.not_leaks)
    out += fmt::format("  {} per {}  {}: {}\n", rounded_quantity(finding.bytes_per_step),
                       per(report), shortened(finding.site, 40), name_of(finding.kind));
  append_never_freed(out, report, top);
  return out;
}

std::string holders_text(const LeakReport& report, const Recording& recording) {
  if (report.holders.empty())
    return "no holders in this recording: the helper for Python was off, saw nothing grow, or "
           "there "
           "were too few steps\n";
  std::map<std::string, std::vector<StackId>> stacks;
  for (const Holder& holder : report.holders)
    stacks[call_site(recording.definitions(), holder.stack)].push_back(holder.stack);
  std::string out = fmt::format("who holds memory of {} sites, as the helper saw it {} times\n",
                                stacks.size(), report.holders.size());
  for (const auto& [site, of_site] : stacks) {
    out += fmt::format("\n{}\n", shortened(site, 90));
    for (const Holder& holder : kinds_of_holders(report.holders, of_site)) {
      const std::string line = fmt::format("   {}", holder.chain);
      out +=
          wrapped(line, 6) +
          fmt::format("\n      {} at {:#x}, {:.1f} s after the start{}\n", quantity(holder.bytes),
                      holder.address, static_cast<double>(holder.time_ns) / 1e9,
                      holder.said > 1 ? fmt::format("; {} times alike", holder.said) : "");
    }
  }
  return out;
}

nlohmann::ordered_json holders_json(const LeakReport& report, const Recording& recording) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.holders/1"},
                                 {"file", recording.info().path},
                                 {"simulated", recording.info().simulated}};
  json["holders"] = nlohmann::ordered_json::array();
  for (const Holder& holder : report.holders)
    json["holders"].push_back({{"site", call_site(recording.definitions(), holder.stack)},
                               {"chain", holder.chain},
                               {"address", holder.address},
                               {"bytes", holder.bytes},
                               {"time_ns", holder.time_ns}});
  return json;
}

nlohmann::ordered_json leak_json(const LeakReport& report, const Recording& recording) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.leaks/1"},
                                 {"file", recording.info().path},
                                 {"simulated", recording.info().simulated},
                                 {"finished", recording.info().finished},
                                 {"sampled", report.sampled},
                                 {"by_step", report.by_step},
                                 {"by_period", report.by_period},
                                 {"steps", report.steps},
                                 {"samples", report.samples},
                                 {"warm_up_samples", report.warm_up_samples},
                                 {"stacks_tested", report.stacks_tested},
                                 {"notes", report.notes}};
  for (const std::string& note : recording.info().notes) json["notes"].push_back(note);
  json["ring_begins_s"] =
      recording.info().ring
          ? nlohmann::ordered_json(static_cast<double>(recording.info().ring->time_ns) * 1e-9)
          : nlohmann::ordered_json(nullptr);
  if (report.by_period) json["period_site"] = report.period_site;
  json["findings"] = nlohmann::ordered_json::array();
  for (const LeakFinding& finding : report.findings)
    json["findings"].push_back(finding_json(finding, recording));
  json["not_leaks"] = nlohmann::ordered_json::array();
  for (const LeakFinding& finding : report.not_leaks)
    json["not_leaks"].push_back(finding_json(finding, recording));
  json["never_freed"] = nlohmann::ordered_json::array();
  for (const NeverFreed& entry : report.never_freed)
    json["never_freed"].push_back({{"site", entry.site},
                                   {"device", entry.device},
                                   {"bytes", entry.bytes},
                                   {"blocks", entry.blocks},
                                   {"known_good", entry.known_good}});
  return json;
}

}  // namespace vramtrack
