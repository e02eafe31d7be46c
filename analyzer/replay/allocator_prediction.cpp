#include "replay/allocator_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace vramtrack {

struct WhatIf::Outcome {
  uint64_t reserved_peak = 0;
  uint64_t driver_calls = 0;
  uint64_t last_resorts = 0;
  bool oom_served = false;
  bool failed = false;
};

WhatIf::WhatIf(const Recording& recording, int16_t device)
    : events_(recording),
      device_(device),
      settings_(AllocatorSettings::of_recording(recording.info().allocator_settings,
                                                recording.info().metadata)) {
  foreign_backend_ = settings_.backend != "native";
  if (settings_.expandable_segments) {
    // Nothing to add: the settings say so.
  } else {
    // Settings can be changed at run time, and old snapshots carry none: the segments know.
    events_.for_each(device, [this](const Event& event) {
      if (event.kind == EventKind::segment_map) settings_.expandable_segments = true;
      return !settings_.expandable_segments;
    });
  }
  // Which version wrote it is not recorded: the tie-break that explains more of it counts.
  counts_ = follow(TieBreak::lowest_address);
  tie_breaks_ = {TieBreak::lowest_address};
  if (!possible()) return;
  const auto explained = [](const DriverCounts& counts) {
    return counts.addresses_equal + counts.segment_events_equal;
  };
  const DriverCounts other = follow(TieBreak::oldest_segment);
  if (explained(other) > explained(counts_)) {
    counts_ = other;
    tie_breaks_ = {TieBreak::oldest_segment};
  } else if (explained(other) == explained(counts_)) {
    tie_breaks_.push_back(TieBreak::oldest_segment);
  }
}

DriverCounts WhatIf::follow(TieBreak tie_break) const {
  AllocatorDriver driver(events_.recording().definitions(), device_, settings_,
                         AllocatorDriver::Mode::follow);
  driver.set_tie_break(tie_break);
  events_.for_each(device_, [&](const Event& event) { return driver.apply(event); });
  driver.finish();
  return driver.counts();
}

bool WhatIf::exact() const {
  return possible() && counts_.first_difference.empty() && counts_.lost_blocks == 0 &&
         counts_.addresses_equal == counts_.requests &&
         counts_.segment_events_equal == counts_.segment_events;
}

bool WhatIf::credible() const {
  if (!possible()) return false;
  if (exact()) return true;
  const auto recorded = static_cast<double>(counts_.recorded_reserved_peak);
  const auto replayed = static_cast<double>(run(settings_, tie_breaks_.front(), Beginning::keep,
                                                Placement::like_recorded, UnknownRequest::largest)
                                                .reserved_peak);
  return std::abs(replayed - recorded) <= 0.01 * recorded;
}

AllocatorSimulator::Limits WhatIf::limits(const AllocatorSettings& settings) const {
  AllocatorSimulator::Limits limits;
  if (counts_.oom_recorded && counts_.oom_capacity != 0) {
    limits.device_bytes = counts_.oom_capacity;
  } else if (counts_.last_resorts != 0) {
    limits.device_bytes = counts_.recorded_reserved_peak;
  }
  if (settings.garbage_collection_threshold > 0)
    limits.fraction_bytes = counts_.recorded_reserved_peak;
  return limits;
}

WhatIf::Outcome WhatIf::run(const AllocatorSettings& settings, TieBreak tie_break,
                            Beginning beginning, Placement placement,
                            UnknownRequest unknown) const {
  AllocatorDriver driver(events_.recording().definitions(), device_, settings,
                         AllocatorDriver::Mode::suppose, limits(settings));
  driver.set_beginning(beginning);
  driver.set_placement(placement);
  driver.set_tie_break(tie_break);
  driver.set_unknown_request(unknown);
  if (counts_.oom_recorded) driver.stop_at_oom();
  events_.for_each(device_, [&](const Event& event) { return driver.apply(event); });
  driver.finish();
  return {driver.simulator().reserved_peak(), driver.simulator().driver_calls(),
          driver.simulator().retries(), driver.counts().oom_served,
          driver.counts().failed_requests != 0};
}

Prediction WhatIf::predict(const AllocatorSettings& settings) const {
  Prediction prediction;
  prediction.settings = settings;
  prediction.device = device_;
  prediction.replay_exact = exact();
  prediction.recorded_reserved_peak = counts_.recorded_reserved_peak;
  if (!possible()) {
    prediction.notes.emplace_back("nothing to replay");
    return prediction;
  }
  std::vector<Outcome> outcomes;
  const bool rounded = counts_.rounded_requests != 0;
  const bool in_force = settings.text() == settings_.text();
  const auto runs = [&](Beginning beginning, Placement placement) {
    for (const TieBreak tie_break : tie_breaks_) {
      outcomes.push_back(run(settings, tie_break, beginning, placement, UnknownRequest::largest));
      if (rounded)
        outcomes.push_back(
            run(settings, tie_break, beginning, placement, UnknownRequest::smallest));
    }
  };
  runs(Beginning::keep, Placement::like_recorded);
  // Under the settings in force there is nothing to suppose about what was recorded.
  if (!in_force) {
    runs(Beginning::keep, Placement::ascending);
    if (!counts_.began_empty) {
      runs(Beginning::repack, Placement::like_recorded);
      runs(Beginning::repack, Placement::ascending);
    }
  }
  const auto [least, most] = std::minmax_element(
      outcomes.begin(), outcomes.end(),
      [](const Outcome& a, const Outcome& b) { return a.reserved_peak < b.reserved_peak; });
  prediction.reserved_peak = {least->reserved_peak, most->reserved_peak};
  prediction.driver_calls = most->driver_calls;
  prediction.last_resorts = most->last_resorts;
  prediction.fails_earlier =
      std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.failed; });
  if (counts_.oom_recorded) {
    const auto served = std::count_if(outcomes.begin(), outcomes.end(),
                                      [](const Outcome& o) { return o.oom_served && !o.failed; });
    if (served == 0 || static_cast<size_t>(served) == outcomes.size())
      prediction.oom_avoided = served != 0;
  }
  if (!counts_.began_empty && !in_force)
    prediction.notes.emplace_back(
        "the recording has no beginning: low if what was there had been laid out anew, high if it "
        "had stayed as it was, or the other way round");
  if (counts_.cache_releases != 0)
    prediction.notes.emplace_back(
        "calls of empty_cache() that released nothing left no trace; under other settings they "
        "might have released something");
  if (rounded)
    prediction.notes.push_back(fmt::format("{} of {} requests are known only rounded",
                                           counts_.rounded_requests, counts_.requests));
  if (!prediction.replay_exact)
    prediction.notes.push_back(
        fmt::format("under the settings in force the replay differs from the recording: {} of {} "
                    "addresses and {} of {} segment events agree",
                    counts_.addresses_equal, counts_.requests, counts_.segment_events_equal,
                    counts_.segment_events));
  if (settings.garbage_collection_threshold > 0)
    prediction.notes.push_back(
        fmt::format("garbage collection works only with set_per_process_memory_fraction; replayed "
                    "with a limit of {} bytes",
                    counts_.recorded_reserved_peak));
  if (!counts_.oom_recorded && counts_.last_resorts != 0)
    prediction.notes.emplace_back(
        "the allocator ran into the device's limit without failing; the recorded peak stands in "
        "for that limit");
  return prediction;
}

std::vector<AllocatorSettings> WhatIf::alternatives() const {
  std::vector<AllocatorSettings> list;
  const auto add = [&](auto change) {
    AllocatorSettings other = settings_;
    other.unknown.clear();
    change(other);
    if (other.text() != settings_.text()) list.push_back(std::move(other));
  };
  add([](AllocatorSettings& s) { s.expandable_segments = !s.expandable_segments; });
  for (const uint64_t megabytes : {64, 256, 1024})
    add([&](AllocatorSettings& s) { s.max_split_size = megabytes * kMiB; });
  add([](AllocatorSettings& s) { s.garbage_collection_threshold = 0.8; });
  for (const uint64_t divisions : {4, 8})
    add([&](AllocatorSettings& s) { s.roundup_power2_divisions.fill(divisions); });
  return list;
}

std::string settings_change(const AllocatorSettings& from, const AllocatorSettings& to) {
  const auto parts = [](const std::string& text) {
    std::vector<std::string> list;
    size_t depth = 0;
    std::string part;
    for (const char c : text) {
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (c == ',' && depth == 0) {
        list.push_back(std::exchange(part, ""));
      } else {
        part.push_back(c);
      }
    }
    if (!part.empty()) list.push_back(part);
    return list;
  };
  const auto before = parts(from.text());
  const auto after = parts(to.text());
  std::string change;
  const auto add = [&](const std::vector<std::string>& list, const std::vector<std::string>& other,
                       std::string_view prefix) {
    for (const std::string& part : list) {
      if (std::find(other.begin(), other.end(), part) != other.end()) continue;
      // A key that is set anew is not also left out.
      const std::string key = part.substr(0, part.find(':') + 1);
      const bool replaced =
          !prefix.empty() && std::any_of(other.begin(), other.end(),
                                         [&](const std::string& o) { return o.starts_with(key); });
      if (!replaced) change += fmt::format("{}{}{}", change.empty() ? "" : ",", prefix, part);
    }
  };
  add(after, before, "");
  add(before, after, "without ");
  return change;
}

int16_t busiest_device(const Recording& recording) {
  std::map<int16_t, uint64_t> events;
  recording.for_each([&](const Event& event) {
    if (event.kind == EventKind::block_alloc) ++events[event.device];
    return true;
  });
  int16_t busiest = -1;
  uint64_t most = 0;
  for (const auto& [device, count] : events)
    if (device >= 0 && count > most) {
      busiest = device;
      most = count;
    }
  return busiest;
}

Prediction predict(const Recording& recording, const AllocatorSettings& settings) {
  return WhatIf(recording, busiest_device(recording)).predict(settings);
}

}  // namespace vramtrack
