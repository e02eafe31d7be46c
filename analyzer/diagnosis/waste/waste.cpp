#include "diagnosis/waste/waste.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "attribution/call_site.h"
#include "diagnosis/waste/absences.h"
#include "replay/progress.h"
#include "replay/timeline.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"unused", "early", "late", "idle"};
constexpr std::array<std::string_view, 4> kSentences = {
    "never touched", "taken long before its first use", "kept long after its last use",
    "idle between two uses"};

// An instant in the life of a block.
struct Instant {
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  uint64_t step = kNoStep;
  Work work = 0;
  StringId kernel = 0;
};

Instant instant_of(const Touch& touch) {
  return {touch.sequence, touch.time_ns, touch.step, touch.work, touch.kernel};
}

Touch touch_of(const Instant& instant) {
  return {instant.kernel, instant.sequence, instant.time_ns, instant.step, instant.work};
}

// Boundaries of steps in between, less one: a stretch that begins and ends within steps covers only
// those between them.
uint64_t whole_steps(const Instant& from, const Instant& to) {
  if (to.step == kNoStep) return 0;
  const uint64_t first = from.step == kNoStep ? 0 : from.step + 1;
  return to.step > first ? to.step - first : 0;
}

// Follows every block from its beginning to its end and keeps the stretches that are too long.
class Watcher : public BlockListener {
 public:
  Watcher(const Recording& recording, const Timeline& timeline, const WasteLimits& limits)
      : recording_(recording),
        limits_(limits),
        by_steps_(timeline.steps.size() >= limits.fewest_steps),
        least_work_(std::max(Work{1}, static_cast<Work>(static_cast<double>(timeline.work) *
                                                        (by_steps_ ? limits.share_with_steps
                                                                   : limits.share_without_steps)))),
        ledger_(recording.definitions()) {
    state_.set_listener(this);
  }

  void watch() {
    Progress progress("Following blocks", recording_.info().event_count);
    recording_.for_each([&](const Event& event) {
      // A block that ends with this event ends before it touches anything.
      state_.apply(event);
      ledger_.apply(event, state_);
      progress.advance();
      return true;
    });
    Instant end = now();
    end.sequence = UINT64_MAX;  // what is never freed would never come back
    for (const int16_t device : state_.devices()) {
      if (device < 0) continue;
      state_.for_each_live(device, [&](const Block& block) { judge(block, end); });
    }
  }

  void block_begun(const Block& block) override {
    if (block.device >= 0) begun_[block.sequence] = now();
  }
  void block_ended(const Block& block, const Event& event, End end) override {
    if (end == End::freed && block.device >= 0) {
      Instant instant = now();
      instant.sequence = event.sequence;
      instant.time_ns = event.time_ns;
      judge(block, instant);
    }
    begun_.erase(block.sequence);
    ledger_.forget(block.sequence);
  }

  [[nodiscard]] bool by_steps() const { return by_steps_; }
  std::vector<WasteFinding> findings;
  std::vector<Absence> absences;

 private:
  [[nodiscard]] Instant now() const {
    return {state_.sequence(), state_.time_ns(), state_.step(), ledger_.work(), 0};
  }

  [[nodiscard]] bool is_long(const Instant& from, const Instant& to) const {
    if (to.work - from.work < least_work_) return false;
    return !by_steps_ || whole_steps(from, to) >= limits_.steps;
  }

  void judge(const Block& block, const Instant& end) {
    const auto begun = begun_.find(block.sequence);
    if (begun == begun_.end()) return;
    Instant begin = begun->second;
    begin.sequence = block.sequence;
    begin.time_ns = block.time_ns;
    const BlockTouches* touches = ledger_.of(block.sequence);
    if (touches == nullptr) return note(block, Waste::unused, begin, end);
    note(block, Waste::early, begin, instant_of(touches->first));
    note(block, Waste::idle, instant_of(touches->idle_from), instant_of(touches->idle_to));
    note(block, Waste::late, instant_of(touches->last), end);
  }

  void note(const Block& block, Waste kind, const Instant& from, const Instant& to) {
    if (!is_long(from, to)) return;
    const std::string site = call_site(recording_.definitions(), block.stack);
    const auto [place, added] =
        places_.try_emplace(std::make_tuple(kind, block.device, site), findings.size());
    if (added)
      findings.push_back(
          {.kind = kind, .device = block.device, .site = site, .stack = block.stack});
    WasteFinding& finding = findings[place->second];
    ++finding.blocks;
    const double seconds = static_cast<double>(to.time_ns - from.time_ns) * 1e-9;
    finding.byte_seconds += static_cast<double>(block.size) * seconds;
    if (to.work - from.work >= finding.longest_work) {
      finding.longest_work = to.work - from.work;
      finding.longest_steps = whole_steps(from, to);
      finding.longest_seconds = seconds;
      finding.before = touch_of(from);
      finding.after = touch_of(to);
      finding.stack = block.stack;
    }
    absences.push_back({.finding = place->second,
                        .device = block.device,
                        .bytes = block.size,
                        .from = from.sequence,
                        .to = to.sequence});
  }

  const Recording& recording_;
  const WasteLimits& limits_;
  const bool by_steps_;
  const Work least_work_;
  MemoryState state_;
  TouchLedger ledger_;
  std::unordered_map<uint64_t, Instant> begun_;
  std::map<std::tuple<Waste, int16_t, std::string>, size_t> places_;
};

}  // namespace

std::string_view name_of(Waste kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::string_view sentence_of(Waste kind) {
  return kSentences[static_cast<size_t>(kind)];
}

WasteReport find_waste(const Recording& recording, const WasteLimits& limits) {
  const Timeline timeline = survey(recording);
  if (timeline.work == 0) {
    throw InputError(
        "the recording does not say which kernel touches which memory; record the job again with "
        "`vramtrack run --kernels on`");
  }
  Watcher watcher(recording, timeline, limits);
  watcher.watch();

  WasteReport report{.limits = limits,
                     .by_steps = watcher.by_steps(),
                     .steps = timeline.steps.size(),
                     .work = timeline.work,
                     .without_layout = timeline.without_layout};
  replay_without(recording, watcher.absences, watcher.findings, report);
  for (WasteFinding& finding : watcher.findings)
    if (finding.bytes >= limits.bytes) report.findings.push_back(std::move(finding));
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const WasteFinding& a, const WasteFinding& b) {
                     return std::tie(a.device, a.peak_without, b.byte_seconds) <
                            std::tie(b.device, b.peak_without, a.byte_seconds);
                   });
  return report;
}

}  // namespace vramtrack
