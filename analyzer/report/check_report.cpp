#include "report/check_report.h"

#include <fmt/format.h>

#include <iterator>

#include "report/json_report.h"
#include "report/text_report.h"
#include "wording/lines.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

// The sums of the blocks one by one against the totals that were kept event by event.
bool balanced(const MemoryState& state, int16_t device) {
  uint64_t live = 0;
  state.for_each_live(device, [&live](const Block& block) { live += block.bytes(); });
  uint64_t reserved = 0;
  for (const Segment& segment : state.segments(device)) reserved += segment.size;
  const DeviceTotals& totals = state.totals(device);
  return live == totals.live() && reserved == totals.reserved &&
         totals.allocated + totals.direct <= totals.in_use;
}

void check_events(const Recording& recording, CheckReport& report) {
  const Definitions& definitions = recording.definitions();
  MemoryState state;
  uint64_t before = 0;
  uint64_t seen = 0;
  const auto balance = [&] {
    for (const int16_t device : state.devices()) {
      if (!balanced(state, device)) ++report.unbalanced;
    }
  };
  // Adding up every block is slow, so it is done at instants that thin out as the job goes on.
  uint64_t next_balance = 1;
  recording.for_each([&](const Event& event) {
    const bool carried = (event.flags & kEventCarried) != 0;
    if (event.sequence <= before && seen != 0 && !carried) ++report.out_of_order;
    if (!carried) before = event.sequence;
    state.apply(event);
    if (++seen == next_balance) {
      balance();
      next_balance += next_balance / 8 + 1;
    }
    if (event.stack != 0 && definitions.stack(event.stack).empty()) ++report.stacks_undefined;
    if (event.text != 0 && definitions.string(event.text).empty()) ++report.strings_undefined;
    return true;
  });
  balance();
}

void find_problems(CheckReport& report) {
  const auto expect_none = [&report](uint64_t count, std::string_view what) {
    if (count != 0) report.problems.push_back(fmt::format("{} {}", grouped(count), what));
  };
  const Integrity& integrity = report.info.integrity;
  const Anomalies& anomalies = report.timeline.anomalies;
  expect_none(report.info.dropped_events, "events were dropped by the writer");
  expect_none(integrity.corrupt_chunks, "chunks cannot be read");
  expect_none(integrity.corrupt_bytes, "bytes between the frames make no sense");
  expect_none(report.out_of_order, "events are out of order");
  expect_none(report.unbalanced, "times the blocks did not add up to the totals");
  expect_none(report.stacks_undefined, "events name a stack that is not in the file");
  expect_none(report.strings_undefined, "events name a text that is not in the file");
  expect_none(anomalies.witness_allocated_wrong,
              "times the allocator's own count of allocated bytes differs from the replay");
  expect_none(anomalies.witness_reserved_wrong,
              "times the allocator's own count of reserved bytes differs from the replay");
  expect_none(anomalies.unknown_frees, "frees of something that was never allocated");
  expect_none(anomalies.overlapping_blocks, "blocks lie where another one was still live");
  expect_none(anomalies.overlapping_physical, "allocations lie where another one still was");
  expect_none(anomalies.blocks_without_segment, "blocks lie in no known segment");
  expect_none(anomalies.blocks_lost, "blocks were live in memory that the driver took back");
  expect_none(anomalies.unknown_devices, "allocations do not say their device");
}

}  // namespace

CheckReport check(const Recording& recording) {
  CheckReport report{.info = recording.info(), .timeline = survey(recording)};
  report.stacks = recording.definitions().stack_count();
  check_events(recording, report);
  find_problems(report);
  return report;
}

std::string text_check(const CheckReport& report) {
  std::string out;
  const auto to = std::back_inserter(out);
  const Integrity& integrity = report.info.integrity;
  const Timeline& timeline = report.timeline;
  fmt::format_to(to, "{}\n",
                 report.whole() ? "whole: nothing is missing and all sums agree" : "not whole:");
  for (const std::string& problem : report.problems) out += wrapped("  " + problem, 4) + "\n";
  fmt::format_to(to, "\n  file      {}\n", shortened(report.info.path, kReportWidth - 12));
  fmt::format_to(to, "  format    {}{}\n", report.info.format,
                 report.info.finished ? "" : ", not closed by its writer");
  fmt::format_to(to, "  events    {} ({} of blocks, {} of the driver, {} kernels), {} dropped\n",
                 grouped(timeline.events), grouped(timeline.block_events),
                 grouped(timeline.physical_events), grouped(timeline.kernels),
                 grouped(report.info.dropped_events));
  fmt::format_to(to, "  threads   {}, stacks {}\n", grouped(timeline.threads),
                 grouped(report.stacks));
  fmt::format_to(to, "  chunks    {}, {} twice, {} unreadable; {} bytes cut off at the end\n",
                 grouped(integrity.chunks), grouped(integrity.duplicate_chunks),
                 grouped(integrity.corrupt_chunks), grouped(integrity.truncated_bytes));
  fmt::format_to(to, "  witness   {} events carry the allocator's own totals, {} differ\n",
                 grouped(timeline.anomalies.witness_checks),
                 grouped(timeline.anomalies.witness_allocated_wrong +
                         timeline.anomalies.witness_reserved_wrong));
  for (const std::string& note : report.info.notes) out += paragraph("  note: ", note);
  return out;
}

nlohmann::ordered_json json_check(const CheckReport& report) {
  using Json = nlohmann::ordered_json;
  const Integrity& integrity = report.info.integrity;
  const Timeline& timeline = report.timeline;
  const Anomalies& anomalies = timeline.anomalies;
  Json json = {
      {"schema", "vramtrack.check/1"}, {"whole", report.whole()}, {"problems", report.problems}};
  json.update(json_of(report.info));
  json["events"] = timeline.events;
  json["block_events"] = timeline.block_events;
  json["physical_events"] = timeline.physical_events;
  json["kernels"] = timeline.kernels;
  json["threads"] = timeline.threads;
  json["stacks"] = report.stacks;
  json["out_of_order_events"] = report.out_of_order;
  json["undefined_stacks"] = report.stacks_undefined;
  json["undefined_strings"] = report.strings_undefined;
  json["integrity"] = {{"chunks", integrity.chunks},
                       {"duplicate_chunks", integrity.duplicate_chunks},
                       {"corrupt_chunks", integrity.corrupt_chunks},
                       {"corrupt_bytes", integrity.corrupt_bytes},
                       {"truncated_bytes", integrity.truncated_bytes}};
  json["ledgers"] = {{"reconcile", report.unbalanced == 0},
                     {"witness_checks", anomalies.witness_checks},
                     {"witness_allocated_wrong", anomalies.witness_allocated_wrong},
                     {"witness_reserved_wrong", anomalies.witness_reserved_wrong},
                     {"unknown_frees", anomalies.unknown_frees},
                     {"overlapping_blocks", anomalies.overlapping_blocks},
                     {"overlapping_physical", anomalies.overlapping_physical},
                     {"blocks_without_segment", anomalies.blocks_without_segment},
                     {"blocks_lost", anomalies.blocks_lost},
                     {"unknown_devices", anomalies.unknown_devices}};
  return json;
}

}  // namespace vramtrack
