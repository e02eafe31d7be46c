#include "report/witness_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "attribution/call_site.h"
#include "report/json_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 12> kMemoryNames = {
    "unknown", "device", "managed",  "pinned",     "registered", "array",
    "pool",    "graph",  "imported", "host (vmm)", "multicast",  "static"};

std::string_view memory_name(Memory memory) {
  const auto index = static_cast<size_t>(memory);
  return index < kMemoryNames.size() ? kMemoryNames[index] : kMemoryNames[0];
}

std::string verdict(const WitnessAudit& audit) {
  const std::string seen =
      fmt::format("{} and {} were seen by both", counted(audit.allocations, "allocation"),
                  counted(audit.releases, "release"));
  if (audit.missed() == 0) return "nothing was missed: " + seen;
  const uint64_t by_hooks = audit.only_cupti.size() + audit.unseen_calls.size();
  return fmt::format("MISSED: {} by the hooks, {} by CUPTI; {}", grouped(by_hooks),
                     grouped(audit.only_hooks.size()), seen);
}

void append_span(std::string& out, const Recording& recording, const WitnessAudit& audit) {
  const WitnessSpan& span = audit.span;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "\nwitness  {}\n", shortened(span.started, 83));
  if (recording.info().simulated)
    out += "         SIMULATED: a stand-in libcupti on the simulated GPU, no card took part\n";
  fmt::format_to(to, "         watched from {} to {}: {}\n", seconds(span.begin_ns),
                 seconds(span.end_ns),
                 span.closed ? span.ended : "the process was killed, later records are lost");
  fmt::format_to(to, "         {}, {}\n", counted(audit.kernels, "kernel"),
                 counted(audit.pool_operations, "pool operation"));
  if (audit.outside_span != 0)
    fmt::format_to(to, "         {} of the hooks fall outside that time and are not compared\n",
                   counted(audit.outside_span, "operation"));
  if (span.lost_records != 0)
    fmt::format_to(to, "         CUPTI lost {}: what only the hooks saw may be among them\n",
                   counted(span.lost_records, "record"));
  if (recording.info().dropped_events != 0)
    fmt::format_to(to, "         the trace lost {}: what only CUPTI saw may be among them\n",
                   counted(recording.info().dropped_events, "event"));
}

using RowEntry = std::pair<std::pair<std::string, std::string>, AuditRow>;

// What was missed first, then what was seen most.
std::vector<RowEntry> sorted_rows(const WitnessAudit& audit) {
  std::vector<RowEntry> rows(audit.rows.begin(), audit.rows.end());
  std::stable_sort(rows.begin(), rows.end(), [](const RowEntry& a, const RowEntry& b) {
    const auto weight = [](const AuditRow& row) {
      return std::make_pair(row.only_hooks + row.only_cupti, row.both);
    };
    return weight(a.second) > weight(b.second);
  });
  return rows;
}

void append_rows(std::string& out, const WitnessAudit& audit, size_t top) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "\n{:<28} {:<28} {:>9} {:>11} {:>11}\n", "API", "library", "both",
                 "only hooks", "only CUPTI");
  const std::vector<RowEntry> rows = sorted_rows(audit);
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const auto& [key, row] = rows[i];
    fmt::format_to(to, "{:<28} {:<28} {:>9} {:>11} {:>11}\n", shortened(key.first, 28),
                   shortened(key.second, 28), grouped(row.both), grouped(row.only_hooks),
                   grouped(row.only_cupti));
  }
  if (rows.size() > top) fmt::format_to(to, "... {} more\n", rows.size() - top);
}

void append_stack(std::string& out, const Definitions& definitions, StackId stack) {
  size_t shown = 0;
  for (const FrameId id : definitions.stack(stack)) {
    const Frame& frame = definitions.frame(id);
    if (!frame.python && is_cuda_library(file_name(frame.module))) continue;
    out += fmt::format("           {}\n", shortened(describe(frame), 80));
    if (++shown == 4) return;
  }
}

void append_operations(std::string& out, std::string_view title,
                       const std::vector<Operation>& operations, const Recording& recording,
                       size_t top) {
  if (operations.empty()) return;
  out += fmt::format("\n{}\n", title);
  for (size_t i = 0; i < operations.size() && i < top; ++i) {
    const Operation& o = operations[i];
    out += shortened(fmt::format("{:>9}  {} {:>10} {} {:#x}  {} ({})", seconds(o.time_ns),
                                 o.allocation ? "alloc" : "free ", quantity(o.size),
                                 memory_name(o.memory), o.address, o.api, o.library),
                     92) +
           "\n";
    append_stack(out, recording.definitions(), o.stack);
  }
  if (operations.size() > top) out += fmt::format("  ... {} more\n", operations.size() - top);
}

nlohmann::ordered_json frames_json(const Definitions& definitions, StackId stack) {
  nlohmann::ordered_json frames = nlohmann::ordered_json::array();
  for (const FrameId id : definitions.stack(stack))
    frames.push_back(describe(definitions.frame(id)));
  return frames;
}

nlohmann::ordered_json operations_json(const std::vector<Operation>& operations,
                                       const Definitions& definitions) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Operation& o : operations)
    list.push_back({{"operation", o.allocation ? "alloc" : "free"},
                    {"time_s", static_cast<double>(o.time_ns) / 1e9},
                    {"address", o.address},
                    {"size", o.size},
                    {"memory", memory_name(o.memory)},
                    {"device", o.device},
                    {"api", o.api},
                    {"library", o.library},
                    {"frames", frames_json(definitions, o.stack)}});
  return list;
}

}  // namespace

std::string text_audit(const Recording& recording, const WitnessAudit& audit, size_t top) {
  std::string out = verdict(audit) + "\n";
  append_span(out, recording, audit);
  append_rows(out, audit, top);
  append_operations(out, "seen by CUPTI, missed by the hooks", audit.only_cupti, recording, top);
  if (!audit.unseen_calls.empty()) {
    out += "\ncalls that returned while no hook was in them\n";
    for (size_t i = 0; i < audit.unseen_calls.size() && i < top; ++i) {
      const UnseenCall& call = audit.unseen_calls[i];
      out += fmt::format("  {} ({})\n", call.api, shortened(call.library, 40));
      append_stack(out, recording.definitions(), call.stack);
    }
  }
  append_operations(out, "seen by the hooks, missed by CUPTI", audit.only_hooks, recording, top);
  if (!audit.exceptions.empty()) out += "\nnot compared (docs/reading-an-audit.md)\n";
  for (const Exception& exception : audit.exceptions)
    out += fmt::format("  {:>9}  {}: {}\n", grouped(exception.count), exception.what,
                       exception.reason);
  return out;
}

nlohmann::ordered_json json_audit(const Recording& recording, const WitnessAudit& audit) {
  using Json = nlohmann::ordered_json;
  const Definitions& definitions = recording.definitions();
  Json json = {{"schema", "vramtrack.audit/1"}, {"missed", audit.missed()}};
  json.update(json_of(recording.info()));
  const WitnessSpan& span = audit.span;
  json["witness"] = {{"library", span.started},
                     {"begin_s", static_cast<double>(span.begin_ns) / 1e9},
                     {"end_s", static_cast<double>(span.end_ns) / 1e9},
                     {"closed", span.closed},
                     {"stepped_aside", span.stepped_aside},
                     {"ended", span.ended},
                     {"lost_records", span.lost_records}};
  json["allocations_seen_by_both"] = audit.allocations;
  json["releases_seen_by_both"] = audit.releases;
  json["kernels"] = audit.kernels;
  json["pool_operations"] = audit.pool_operations;
  json["outside_the_witness_time"] = audit.outside_span;
  Json rows = Json::array();
  for (const auto& [key, row] : sorted_rows(audit))
    rows.push_back({{"api", key.first},
                    {"library", key.second},
                    {"both", row.both},
                    {"only_hooks", row.only_hooks},
                    {"only_cupti", row.only_cupti}});
  json["rows"] = rows;
  json["only_cupti"] = operations_json(audit.only_cupti, definitions);
  json["only_hooks"] = operations_json(audit.only_hooks, definitions);
  Json calls = Json::array();
  for (const UnseenCall& call : audit.unseen_calls)
    calls.push_back({{"api", call.api},
                     {"library", call.library},
                     {"frames", frames_json(definitions, call.stack)}});
  json["unseen_calls"] = calls;
  Json exceptions = Json::array();
  for (const Exception& exception : audit.exceptions)
    exceptions.push_back(
        {{"what", exception.what}, {"reason", exception.reason}, {"count", exception.count}});
  json["exceptions"] = exceptions;
  return json;
}

}  // namespace vramtrack
