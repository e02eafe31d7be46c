// What the caching allocator would have done under other settings: the same requests, replayed.
//
//   WhatIf what_if(recording, device);
//   Prediction p = what_if.predict(AllocatorSettings::parse("expandable_segments:True"));
//
// A prediction is worth as much as the replay of the settings that were in force: `replay_exact`
// says whether that one gave every address and every segment event of the recording.
#ifndef VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_PREDICTION_H
#define VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_PREDICTION_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/allocator_driver.h"
#include "replay/allocator_events.h"

namespace vramtrack {

struct ByteRange {
  uint64_t low = 0;
  uint64_t high = 0;
};

struct Prediction {
  AllocatorSettings settings;
  int16_t device = 0;
  bool replay_exact = false;
  uint64_t recorded_reserved_peak = 0;
  ByteRange reserved_peak;  // low and high differ where the recording leaves something open
  uint64_t driver_calls = 0;
  uint64_t last_resorts = 0;  // times the whole cache was given back before memory was found
  // A request that was served in the recording would have found no memory: the peak is that of a
  // run that was cut short.
  bool fails_earlier = false;
  // Where the recording ends in an OOM: whether the request would have been served. Empty where
  // there was none, or where the answer depends on what the recording leaves open.
  std::optional<bool> oom_avoided;
  std::vector<std::string> notes;  // what makes it uncertain

  // Reserved bytes that would have been saved, negative where it costs. The cautious end; never
  // a gain where the run fails earlier.
  [[nodiscard]] int64_t saving() const {
    if (fails_earlier && reserved_peak.high <= recorded_reserved_peak) return 0;
    return static_cast<int64_t>(recorded_reserved_peak) - static_cast<int64_t>(reserved_peak.high);
  }
};

class WhatIf {
 public:
  WhatIf(const Recording& recording, int16_t device);

  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }  // in force
  // How the replay under the recorded settings compares with the recording.
  [[nodiscard]] const DriverCounts& replay() const { return counts_; }
  [[nodiscard]] bool exact() const;
  // False where nothing can be said: no allocations recorded, or another allocator.
  [[nodiscard]] bool possible() const { return counts_.requests != 0 && !foreign_backend_; }
  // Whether a run under the settings in force reserves what was recorded, within one percent. If
  // not, a prediction for others is worth nothing.
  [[nodiscard]] bool credible() const;
  [[nodiscard]] const AllocatorEvents& events() const { return events_; }

  [[nodiscard]] Prediction predict(const AllocatorSettings& settings) const;
  // The settings people try, without those in force.
  [[nodiscard]] std::vector<AllocatorSettings> alternatives() const;

 private:
  struct Outcome;
  DriverCounts follow(TieBreak tie_break) const;
  Outcome run(const AllocatorSettings& settings, TieBreak tie_break, Beginning beginning,
              Placement placement, UnknownRequest unknown) const;
  [[nodiscard]] AllocatorSimulator::Limits limits(const AllocatorSettings& settings) const;

  AllocatorEvents events_;
  int16_t device_;
  AllocatorSettings settings_;
  std::vector<TieBreak> tie_breaks_;  // those that explain the recording equally well
  DriverCounts counts_;
  bool foreign_backend_ = false;
};

// How the one differs from the other, as one would write it: "max_split_size_mb:64",
// "without expandable_segments:True".
std::string settings_change(const AllocatorSettings& from, const AllocatorSettings& to);

// The device with the most block events; -1 where no device has any.
int16_t busiest_device(const Recording& recording);
Prediction predict(const Recording& recording, const AllocatorSettings& settings);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_PREDICTION_H
