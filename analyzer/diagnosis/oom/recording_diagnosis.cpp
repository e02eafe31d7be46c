#include "diagnosis/oom/recording_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/oom/replayed_savings.h"
#include "import/allocator_settings.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

// A single request or block from this share of all that is live is what made the peak.
constexpr double kPeakShare = 0.25;
// Growth from step to step counts from this share of what is live.
constexpr double kGrowthShare = 0.05;
constexpr size_t kStepsForLeak = 4;

PrintedSize exact(uint64_t bytes) {
  return PrintedSize::exact(static_cast<long double>(bytes));
}

void conclude(OomVerdict verdict, Confidence confidence, std::string reason, OomAudit& audit) {
  if (audit.verdict != verdict && audit.verdict != OomVerdict::undetermined) {
    audit.also_possible.insert(audit.also_possible.begin(), audit.verdict);
  }
  std::erase(audit.also_possible, verdict);
  audit.verdict = verdict;
  audit.confidence = confidence;
  audit.reason = std::move(reason);
}

bool is_host(Memory memory) {
  return memory == Memory::pinned || memory == Memory::registered || memory == Memory::vmm_host;
}

// Live memory at the beginnings of steps that rises nearly every time, and by enough to matter.
void look_for_leak(const OomScene& scene, OomAudit& audit) {
  if (scene.steps.size() < kStepsForLeak || scene.growth.empty()) return;
  size_t rises = 0;
  for (size_t i = 1; i < scene.steps.size(); ++i) {
    if (scene.steps[i].live > scene.steps[i - 1].live) ++rises;
  }
  const size_t intervals = scene.steps.size() - 1;
  if (rises * 5 < intervals * 4) return;
  const uint64_t first = scene.steps.front().live;
  const uint64_t last = scene.steps.back().live;
  const uint64_t grown = last > first ? last - first : 0;
  if (static_cast<double>(grown) < kGrowthShare * static_cast<double>(scene.totals.live())) return;
  const bool enough = !audit.missing || static_cast<long double>(grown) >= audit.missing->bytes;
  const SiteGrowth& most = scene.growth.front();
  const std::string reason = fmt::format(
      "live memory at the beginning of a step grew from {} to {} over {} steps, {} per step; most "
      "of it "
      "from {} (+{} in {} blocks)",
      quantity(first), quantity(last), intervals, quantity(grown / intervals), most.site,
      quantity(static_cast<uint64_t>(most.bytes)), most.blocks);
  if (!enough) {
    audit.remarks.push_back(reason + "; that alone does not explain the OOM");
    audit.also_possible.push_back(OomVerdict::leak);
    return;
  }
  conclude(OomVerdict::leak,
           rises == intervals && intervals >= 6 ? Confidence::high : Confidence::medium, reason,
           audit);
}

// PyTorch's memory fraction refuses without asking the driver.
void look_for_limit(const OomScene& scene, OomAudit& audit) {
  if (!scene.gave_up_unrefused || audit.verdict == OomVerdict::fragmentation) return;
  conclude(
      OomVerdict::limit, Confidence::high,
      fmt::format("the allocator gave up at {} reserved although the driver had refused nothing: a "
                  "limit of its own (set_per_process_memory_fraction)",
                  quantity(scene.totals.reserved)),
      audit);
}

// What lies outside the pool and still belongs to this process is known by line.
void look_outside(const OomScene& scene, OomAudit& audit) {
  if (scene.direct_sites.empty() || scene.totals.direct == 0) return;
  const SiteShare& most = scene.direct_sites.front();
  audit.remarks.push_back(
      fmt::format("{} of this process were allocated past the caching allocator, most "
                  "of it ({}) at {}",
                  quantity(scene.totals.direct), quantity(most.bytes), most.site));
}

bool lasting_category(const std::string& row) {
  return row.starts_with("parameters") || row.starts_with("optimizer_state") ||
         row.starts_with("gradients") || row.starts_with("kv_cache");
}

// One request, or one block of this step, that is a large part of all there is.
void look_for_peak(const OomScene& scene, OomAudit& audit) {
  if (audit.verdict != OomVerdict::capacity) return;
  if (scene.total && scene.ask > *scene.total) return;  // too large for any moment
  const double whole = static_cast<double>(scene.totals.live() + scene.ask);
  if (!scene.request_is_lasting && static_cast<double>(scene.ask) >= kPeakShare * whole) {
    return conclude(
        OomVerdict::transient_peak, Confidence::medium,
        fmt::format(
            "the request of {} at {} alone is {:.0f} % of all that would have been live; without "
            "it {} are live",
            quantity(scene.ask), scene.request_site, 100 * static_cast<double>(scene.ask) / whole,
            quantity(scene.totals.live())),
        audit);
  }
  const LargestBlock& block = scene.largest_block;
  if (block.of_this_step && !lasting_category(block.category) &&
      static_cast<double>(block.bytes) >= kPeakShare * whole) {
    conclude(OomVerdict::transient_peak, Confidence::medium,
             fmt::format("one block of this step, {} from {}, is {:.0f} % of all that is live",
                         quantity(block.bytes), block.site,
                         100 * static_cast<double>(block.bytes) / whole),
             audit);
  }
}

// What the holes themselves say: a piece that is large enough and was not taken, or none.
void check_holes(const OomScene& scene, OomAudit& audit) {
  const FreeSpace& space = scene.space;
  if (!scene.has_blocks || space.total == 0) return;
  if (audit.verdict == OomVerdict::fragmentation && space.largest >= scene.ask) {
    audit.remarks.push_back(
        fmt::format("a free piece of {} exists, but not where the request may use it (another "
                    "stream, a private "
                    "pool, or it is still pending)",
                    quantity(space.largest)));
  }
  audit.remarks.push_back(fmt::format(
      "the pool holds {} unused in {} pieces, the largest {}{}; {} of {} segments are split and "
      "cannot "
      "be given back",
      quantity(space.total), space.pieces, quantity(space.largest),
      space.pending != 0 ? fmt::format(", {} of it waiting for a stream", quantity(space.pending))
                         : "",
      space.split_segments, space.segments));
}

std::map<std::string, std::string> settings_of(const Recording& recording, const OomScene& scene) {
  const auto settings = AllocatorSettings::of_recording(recording.info().allocator_settings,
                                                        recording.info().metadata);
  std::map<std::string, std::string> result;
  if (settings.expandable_segments || scene.space.expandable)
    result["expandable_segments"] = "true";
  if (settings.max_split_size != AllocatorSettings::kUnlimited) {
    result["max_split_size_mb"] = std::to_string(settings.max_split_size / kMiB);
  }
  if (settings.garbage_collection_threshold > 0) {
    result["garbage_collection_threshold"] =
        fmt::format("{}", settings.garbage_collection_threshold);
  }
  if (settings.backend != "native") result["backend"] = settings.backend;
  return result;
}

bool settings_are_known(const RecordingInfo& info) {
  if (info.source == RecordingInfo::Source::trace || !info.allocator_settings.empty()) return true;
  return std::any_of(info.metadata.begin(), info.metadata.end(),
                     [](const auto& entry) { return entry.first.starts_with("allocator."); });
}

bool suspects_fragmentation(const OomAudit& audit) {
  return audit.verdict == OomVerdict::fragmentation ||
         std::find(audit.also_possible.begin(), audit.also_possible.end(),
                   OomVerdict::fragmentation) != audit.also_possible.end();
}

}  // namespace

OomNumbers numbers_of(const OomScene& scene) {
  OomNumbers numbers;
  if (scene.ask != 0) numbers.ask = exact(scene.ask);
  if (scene.total) numbers.total = exact(*scene.total);
  if (scene.free) numbers.free = exact(*scene.free);
  if (scene.others) numbers.other_processes = exact(*scene.others);
  // Beside a caching allocator's pool everything is outside it, other libraries of this process,
  // too.
  numbers.reserved = exact(scene.has_blocks ? scene.totals.reserved : scene.totals.in_use);
  numbers.allocated = exact(scene.has_blocks ? scene.totals.allocated : scene.totals.live());
  // The allocator asks the driver for whole segments: what is free may be enough for the request
  // and not for the segment.
  if (scene.has_blocks && scene.ask != 0 && scene.free && *scene.free >= scene.ask) {
    const uint64_t segment = AllocatorSettings{}.allocation_size(scene.ask);
    if (*scene.free < segment) numbers.ask = exact(segment);
  }
  return numbers;
}

OomAudit judge_scene(const OomScene& scene, const OomNumbers& numbers) {
  OomAudit audit;
  if (!scene.found && !scene.has_history) {
    audit.reason = fmt::format(
        "the file shows one moment, with {} live, and nothing of what came before: "
        "whether anything ran out of memory it does not say",
        quantity(scene.totals.live()));
    return audit;
  }
  if (!scene.found) {
    audit.verdict = OomVerdict::healthy;
    audit.confidence = Confidence::high;
    audit.reason =
        fmt::format("nothing ran out of memory in this recording; at the peak {} were live",
                    quantity(scene.totals.live()));
    if (scene.refused_by_driver != 0) {
      audit.remarks.push_back(
          fmt::format("the driver refused {}, and the allocator served {} after giving "
                      "cached memory back: "
                      "it is near the edge",
                      counted(scene.refused_by_driver, "request"),
                      scene.refused_by_driver == 1 ? "it" : "them"));
    }
    return audit;
  }
  if (is_host(scene.memory)) {
    audit.verdict = OomVerdict::host_memory;
    audit.confidence = Confidence::high;
    audit.reason = fmt::format(
        "the request that failed, {} at {}, was for pinned host memory, not for the "
        "device's",
        quantity(scene.ask), scene.request_site);
    return audit;
  }
  audit = audit_oom(numbers);
  look_for_limit(scene, audit);
  look_outside(scene, audit);
  look_for_peak(scene, audit);
  if (audit.verdict == OomVerdict::capacity || audit.verdict == OomVerdict::transient_peak) {
    look_for_leak(scene, audit);
  }
  check_holes(scene, audit);
  if (scene.found && !scene.free_is_recorded && scene.free) {
    audit.remarks.emplace_back(
        "free memory is an earlier measurement, carried forward by what was allocated since");
  }
  return audit;
}

RecordingDiagnosis diagnose_recording(const Recording& recording, int16_t device) {
  RecordingDiagnosis diagnosis;
  diagnosis.scene = look_at_oom(recording, device);
  const OomScene& scene = diagnosis.scene;
  diagnosis.numbers = numbers_of(scene);
  diagnosis.audit = judge_scene(scene, diagnosis.numbers);

  AdviceContext context;
  context.library = scene.has_blocks ? "PyTorch" : "CUDA";
  context.kind = is_host(scene.memory) ? MessageKind::host : MessageKind::device;
  context.numbers = diagnosis.numbers;
  context.audit = diagnosis.audit;
  context.settings = settings_of(recording, scene);
  context.settings_known = settings_are_known(recording.info());
  for (const auto& [row, bytes] : scene.categories) {
    context.categories[row] = static_cast<long double>(bytes);
  }
  if (scene.has_blocks && suspects_fragmentation(diagnosis.audit)) {
    context.replayed = replay_alternatives(recording, scene.device);
  }
  if (scene.found) diagnosis.advice = advise(context);
  return diagnosis;
}

}  // namespace vramtrack
