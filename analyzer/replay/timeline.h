// The course of a recording: one pass that finds the instants worth looking at, and the sums in
// between, thinned so that they stay small however long the job was.
//
// Sums are exact at every event. What is thinned is the picture: it keeps the least and the
// greatest value of each stretch, so that no peak is lost.
#ifndef VRAMTRACK_ANALYZER_REPLAY_TIMELINE_H
#define VRAMTRACK_ANALYZER_REPLAY_TIMELINE_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/state.h"

namespace vramtrack {

// An instant: after the event with this sequence number, or after the last event up to this time.
struct Moment {
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
  bool by_time = false;
  uint64_t step = kNoStep;
  int16_t device = -1;
  std::string name;  // "oom", "allocated-peak", "mark:after warm-up" ...
};

struct OomEvent {
  Moment moment;
  uint64_t size = 0;  // what the allocator asked for
  uint64_t requested = 0;
  StackId stack = 0;
};

// One stretch of the picture.
struct Stretch {
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
  uint64_t least_allocated = 0, most_allocated = 0;
  uint64_t most_in_use = 0;
  uint64_t most_reserved = 0;
};

// What one device went through. `allocated` here is DeviceTotals::allocated where a caching
// allocator reported blocks, else live(): the same rule for every number of a report.
struct DeviceTimeline {
  int16_t device = 0;
  bool has_blocks = false;
  Moment allocated_peak;
  Moment physical_peak;
  Moment reserved_peak;
  uint64_t most_allocated = 0;
  uint64_t most_requested = 0;
  uint64_t most_in_use = 0;
  uint64_t most_reserved = 0;
  uint64_t failed_requests = 0;  // the driver refused
  std::vector<Stretch> picture;  // at most kMostStretches, in order
  std::vector<OomEvent> ooms;
};

struct StepBoundary {
  uint64_t step = 0;
  uint64_t sequence = 0;
  uint64_t time_ns = 0;
};

// A maximum since the start of the job, of which only the value is known: a ring has overwritten
// the moment.
struct EarlierPeak {
  RingPeak what = RingPeak::allocated;
  uint64_t bytes = 0;
  Moment moment;
};

struct Timeline {
  static constexpr size_t kMostStretches = 4096;

  std::map<int16_t, DeviceTimeline> devices;
  std::vector<Moment> marks;
  std::vector<StepBoundary> steps;
  Moment end;
  uint64_t events = 0;
  uint64_t block_events = 0;
  uint64_t physical_events = 0;
  uint64_t kernels = 0;
  uint64_t accesses = 0;        // of kernels: launches that say what they were given (--kernels on)
  uint64_t work = 0;            // the whole run on the clock of replay/touches.h
  uint64_t without_layout = 0;  // launches that could not be read
  uint64_t threads = 0;
  std::optional<Moment> ring_begin;  // what came before is gone
  std::vector<EarlierPeak> earlier_peaks;
  Anomalies anomalies;  // of the whole replay

  [[nodiscard]] const DeviceTimeline* device(int16_t ordinal) const;
  [[nodiscard]] uint64_t allocated(int16_t ordinal, const DeviceTotals& totals) const;
};

// One pass over the recording. Shows progress on stderr when it is a terminal.
Timeline survey(const Recording& recording);

// What a user writes after --at: oom, allocated-peak, peak, reserved-peak, end, mark:NAME (the last
// of that name; mark:NAME#2 the second), step:N (its beginning), SECONDS since the start. Empty is
// the default, the OOM if there is one, else the peak of allocated memory. The moment is that of
// the device; throws InputError where the recording has no such moment.
Moment find_moment(const Timeline& timeline, const std::string& at, int16_t device);

// The state at a moment.
MemoryState state_at(const Recording& recording, const Moment& moment);

// The states at several moments in one pass. Moments may be in any order and may repeat; `visit` is
// called once for each, with its index, in the order of the recording. With `each` the pass goes on
// to the end of the recording and shows it every event, after the moments that lie before it.
void visit_states(const Recording& recording, const std::vector<Moment>& moments,
                  const std::function<void(size_t, const MemoryState&)>& visit,
                  const std::function<void(const Event&)>& each = nullptr);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_TIMELINE_H
