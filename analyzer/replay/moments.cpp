// Finding a moment by what the user calls it, and the state at it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "replay/progress.h"
#include "replay/timeline.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

std::string list_of(const std::vector<Moment>& moments) {
  std::string names;
  for (size_t i = 0; i < moments.size() && i < 8; ++i) {
    names += (i == 0 ? "" : ", ") + moments[i].name.substr(5);
  }
  return moments.size() > 8 ? names + ", ..." : names;
}

Moment find_mark(const Timeline& timeline, const std::string& at) {
  std::string name = at;
  size_t wanted = 0;  // 0: the last
  const size_t hash = at.rfind('#');
  if (hash != std::string::npos) {
    const char* end = at.data() + at.size();
    const auto parsed = std::from_chars(at.data() + hash + 1, end, wanted);
    if (parsed.ptr == end && parsed.ec == std::errc() && wanted != 0) {
      name = at.substr(0, hash);
    } else {
      wanted = 0;
    }
  }
  const Moment* found = nullptr;
  size_t seen = 0;
  for (const Moment& mark : timeline.marks) {
    if (mark.name != name && mark.name != at) continue;
    found = &mark;
    if (++seen == wanted) break;
  }
  if (found == nullptr || seen < wanted) {
    throw InputError(timeline.marks.empty()
                         ? "the recording has no marks"
                         : fmt::format("the recording has no mark '{}'; it has {}", at.substr(5),
                                       list_of(timeline.marks)));
  }
  return *found;
}

Moment find_step(const Timeline& timeline, const std::string& at) {
  for (const StepBoundary& boundary : timeline.steps) {
    if ("step:" + std::to_string(boundary.step) == at) {
      return {.sequence = boundary.sequence,
              .time_ns = boundary.time_ns,
              .step = boundary.step,
              .name = at};
    }
  }
  throw InputError(fmt::format("the recording has no {}", at));
}

Moment find_time(const std::string& at) {
  double seconds = 0;
  const char* end = at.data() + at.size();
  const auto parsed = std::from_chars(at.data(), end, seconds);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(seconds) || seconds < 0) {
    throw InputError(
        fmt::format("--at {}: expected oom, allocated-peak, peak, reserved-peak, end, "
                    "mark:NAME, step:N or seconds since the start",
                    at));
  }
  return {.time_ns = seconds < 1e9 ? static_cast<uint64_t>(seconds * 1e9) : UINT64_MAX,
          .by_time = true,
          .name = at + " s"};
}

Moment of_device(const Timeline& timeline, const std::string& at, int16_t device) {
  const DeviceTimeline* course = timeline.device(device);
  if (course == nullptr) throw InputError(fmt::format("the recording has no device {}", device));
  if (at == "oom") {
    if (course->ooms.empty()) {
      throw InputError("no allocation ran out of memory in this recording");
    }
    return course->ooms.back().moment;
  }
  if (at == "peak") return course->physical_peak;
  if (at == "reserved-peak") return course->reserved_peak;
  return course->allocated_peak;
}

}  // namespace

Moment find_moment(const Timeline& timeline, const std::string& at, int16_t device) {
  Moment moment;
  if (at.empty()) {
    const DeviceTimeline* course = timeline.device(device);
    const bool died = course != nullptr && !course->ooms.empty();
    moment = of_device(timeline, died ? "oom" : "allocated-peak", device);
  } else if (at == "oom" || at == "allocated-peak" || at == "peak" || at == "reserved-peak") {
    moment = of_device(timeline, at, device);
  } else if (at == "end") {
    moment = timeline.end;
  } else if (at.starts_with("mark:")) {
    moment = find_mark(timeline, at);
  } else if (at.starts_with("step:")) {
    moment = find_step(timeline, at);
  } else {
    moment = find_time(at);
  }
  if (timeline.ring_begin && moment.by_time && moment.time_ns < timeline.ring_begin->time_ns) {
    throw InputError(fmt::format("--at {}: the ring begins at {:.3f} s, what was before is gone",
                                 at, static_cast<double>(timeline.ring_begin->time_ns) / 1e9));
  }
  moment.device = device;
  return moment;
}

MemoryState state_at(const Recording& recording, const Moment& moment) {
  MemoryState state;
  Progress progress("Replaying", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    if (moment.by_time ? event.time_ns > moment.time_ns : event.sequence > moment.sequence) {
      return false;
    }
    state.apply(event);
    progress.advance();
    return true;
  });
  return state;
}

void visit_states(const Recording& recording, const std::vector<Moment>& moments,
                  const std::function<void(size_t, const MemoryState&)>& visit,
                  const std::function<void(const Event&)>& each) {
  std::vector<const Moment*> by_sequence;
  std::vector<const Moment*> by_time;
  for (const Moment& moment : moments) (moment.by_time ? by_time : by_sequence).push_back(&moment);
  // The next one at the back.
  std::stable_sort(by_sequence.begin(), by_sequence.end(),
                   [](const Moment* a, const Moment* b) { return a->sequence > b->sequence; });
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const Moment* a, const Moment* b) { return a->time_ns > b->time_ns; });

  MemoryState state;
  const auto visit_back = [&](std::vector<const Moment*>& list) {
    visit(static_cast<size_t>(list.back() - moments.data()), state);
    list.pop_back();
  };
  Progress progress("Replaying", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    while (!by_sequence.empty() && event.sequence > by_sequence.back()->sequence) {
      visit_back(by_sequence);
    }
    while (!by_time.empty() && event.time_ns > by_time.back()->time_ns) visit_back(by_time);
    const bool all_seen = by_sequence.empty() && by_time.empty();
    if (all_seen && !each) return false;
    if (!all_seen) state.apply(event);
    if (each) each(event);
    progress.advance();
    return true;
  });
  while (!by_sequence.empty()) visit_back(by_sequence);
  while (!by_time.empty()) visit_back(by_time);
}

}  // namespace vramtrack
