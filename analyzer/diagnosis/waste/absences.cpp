#include "diagnosis/waste/absences.h"

#include <algorithm>

#include "replay/progress.h"

namespace vramtrack {
namespace {

// Something goes or comes back: after the event with this number.
struct Change {
  uint64_t after = 0;
  size_t finding = 0;
  int16_t device = -1;
  int64_t bytes = 0;  // more absent, or fewer
};

std::vector<Change> changes_of(const std::vector<Absence>& absences,
                               const std::vector<WasteFinding>& findings) {
  std::vector<Change> changes;
  for (const Absence& absence : absences) {
    const auto bytes = static_cast<int64_t>(absence.bytes);
    // A block that is missing from its beginning is missing with the event that made it; one that
    // is missing until its end comes "back" with the event that ends it.
    const bool from_birth = findings[absence.finding].kind == Waste::unused ||
                            findings[absence.finding].kind == Waste::early;
    const uint64_t after_from = from_birth ? absence.from : absence.from + 1;
    if (after_from >= absence.to) continue;
    changes.push_back({after_from, absence.finding, absence.device, bytes});
    changes.push_back({absence.to, absence.finding, absence.device, -bytes});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.after < b.after; });
  return changes;
}

uint64_t without(uint64_t live, int64_t absent) {
  return live - std::min(live, static_cast<uint64_t>(absent));
}

class Replay {
 public:
  Replay(std::vector<WasteFinding>& findings, WasteReport& report)
      : findings_(findings), report_(report), absent_(findings.size()) {}

  void apply(const Change& change) {
    absent_[change.finding] += change.bytes;
    absent_of_[change.device] += change.bytes;
    WasteFinding& finding = findings_[change.finding];
    finding.bytes = std::max(finding.bytes, static_cast<uint64_t>(absent_[change.finding]));
  }

  void measure(int16_t device, uint64_t live) {
    uint64_t& peak = report_.peaks[device];
    peak = std::max(peak, live);
    uint64_t& lower_peak = report_.peaks_without[device];
    lower_peak = std::max(lower_peak, without(live, absent_of_[device]));
    for (size_t i = 0; i < findings_.size(); ++i) {
      if (findings_[i].device != device) continue;
      findings_[i].peak_without = std::max(findings_[i].peak_without, without(live, absent_[i]));
    }
  }

 private:
  std::vector<WasteFinding>& findings_;
  WasteReport& report_;
  std::vector<int64_t> absent_;
  std::map<int16_t, int64_t> absent_of_;
};

}  // namespace

void replay_without(const Recording& recording, const std::vector<Absence>& absences,
                    std::vector<WasteFinding>& findings, WasteReport& report) {
  const std::vector<Change> changes = changes_of(absences, findings);
  Replay replay(findings, report);
  MemoryState state;
  std::map<int16_t, uint64_t> live;
  size_t next = 0;
  Progress progress("Replaying without", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    state.apply(event);
    progress.advance();
    const size_t first = next;
    while (next < changes.size() && changes[next].after <= event.sequence)
      replay.apply(changes[next++]);
    // Totals change with few kinds of events; launches are most of a recording.
    const bool changes_nothing =
        static_cast<uint8_t>(event.kind) >= static_cast<uint8_t>(EventKind::memory_sample);
    if (changes_nothing && first == next) return true;
    for (const int16_t device : state.devices()) {
      if (device < 0) continue;
      const uint64_t now = state.totals(device).live();
      uint64_t& before = live[device];
      if (now != before || first != next) replay.measure(device, now);
      before = now;
    }
    return true;
  });
}

}  // namespace vramtrack
