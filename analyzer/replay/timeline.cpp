#include "replay/timeline.h"

#include <algorithm>

#include "replay/progress.h"
#include "replay/touches.h"

namespace vramtrack {
namespace {

// The picture of one device: stretches of so many events each. When there are too many, neighbours
// are joined and from then on each stretch covers twice as many events.
class Picture {
 public:
  void add(uint64_t time_ns, uint64_t allocated, const DeviceTotals& totals) {
    if (in_last_ == per_stretch_ || stretches_.empty()) {
      if (stretches_.size() == Timeline::kMostStretches) halve();
      stretches_.push_back({.first_time_ns = time_ns, .least_allocated = allocated});
      in_last_ = 0;
    }
    Stretch& last = stretches_.back();
    ++in_last_;
    last.last_time_ns = time_ns;
    last.least_allocated = std::min(last.least_allocated, allocated);
    last.most_allocated = std::max(last.most_allocated, allocated);
    last.most_in_use = std::max(last.most_in_use, totals.in_use);
    last.most_reserved = std::max(last.most_reserved, totals.reserved);
  }
  std::vector<Stretch> take() { return std::move(stretches_); }

 private:
  void halve() {
    for (size_t i = 0; i < stretches_.size(); i += 2) {
      Stretch joined = stretches_[i];
      const Stretch& next = stretches_[i + 1];
      joined.last_time_ns = next.last_time_ns;
      joined.least_allocated = std::min(joined.least_allocated, next.least_allocated);
      joined.most_allocated = std::max(joined.most_allocated, next.most_allocated);
      joined.most_in_use = std::max(joined.most_in_use, next.most_in_use);
      joined.most_reserved = std::max(joined.most_reserved, next.most_reserved);
      stretches_[i / 2] = joined;
    }
    stretches_.resize(stretches_.size() / 2);
    per_stretch_ *= 2;
  }

  std::vector<Stretch> stretches_;
  uint64_t per_stretch_ = 1;
  uint64_t in_last_ = 0;
};
static_assert(Timeline::kMostStretches % 2 == 0);

// The greatest value so far and when it was first reached.
struct Peak {
  uint64_t value = 0;
  Moment moment;

  void offer(uint64_t now, const Event& event, uint64_t step) {
    if (now <= value) return;
    value = now;
    moment.sequence = event.sequence;
    moment.time_ns = event.time_ns;
    moment.step = step;
  }
};

// Follows one device. Whether a caching allocator reports its blocks is only known once one has,
// so both readings of "allocated" are followed until the end.
struct Follower {
  const DeviceTotals* totals = nullptr;
  Peak allocated, live, physical, reserved;
  uint64_t most_requested = 0;
  Picture allocated_picture, live_picture;
  DeviceTimeline result;

  void observe(const Event& event, uint64_t step) {
    // Of sampled blocks the sum is an estimate, but the allocator's own count is not.
    const bool counted = totals->sampled && event.witness_allocated != 0;
    if (counted || !totals->sampled)
      allocated.offer(counted ? event.witness_allocated : totals->allocated, event, step);
    live.offer(totals->live(), event, step);
    physical.offer(totals->in_use, event, step);
    reserved.offer(totals->reserved, event, step);
    most_requested = std::max(most_requested, totals->requested);
    allocated_picture.add(event.time_ns, totals->allocated, *totals);
    if (!totals->has_blocks) live_picture.add(event.time_ns, totals->live(), *totals);
  }

  DeviceTimeline finish(int16_t device) {
    result.device = device;
    result.has_blocks = totals->has_blocks;
    const Peak& peak = result.has_blocks ? allocated : live;
    const auto named = [device](Moment moment, const char* name) {
      moment.device = device;
      moment.name = name;
      return moment;
    };
    result.allocated_peak = named(peak.moment, "allocated-peak");
    result.physical_peak = named(physical.moment, "peak");
    result.reserved_peak = named(reserved.moment, "reserved-peak");
    result.most_allocated = peak.value;
    result.most_requested = result.has_blocks ? most_requested : peak.value;
    result.most_in_use = physical.value;
    result.most_reserved = reserved.value;
    result.picture = (result.has_blocks ? allocated_picture : live_picture).take();
    return std::move(result);
  }
};

class Surveyor {
 public:
  void observe(const Event& event) {
    state_.apply(event);
    // What a ring carried over made the state, but when and how high it went is not known.
    if ((event.flags & kEventCarried) != 0) return note_carried(event);
    ++timeline_.events;
    timeline_.end.sequence = event.sequence;
    timeline_.end.time_ns = std::max(timeline_.end.time_ns, event.time_ns);
    note_thread(event.thread);
    const auto kind = static_cast<uint8_t>(event.kind);
    if (kind < static_cast<uint8_t>(EventKind::mark)) return observe_ledgers(event);
    if (is_work(event)) ++timeline_.work;
    switch (event.kind) {
      case EventKind::mark:
        timeline_.marks.push_back(moment_of(event));
        marks_.push_back(event.text);
        return;
      case EventKind::step:
        timeline_.steps.push_back(
            {.step = event.extra, .sequence = event.sequence, .time_ns = event.time_ns});
        return;
      case EventKind::kernel_access:
        ++timeline_.accesses;
        ++timeline_.kernels;
        return;
      case EventKind::kernel:
        ++timeline_.kernels;
        if ((event.flags & kEventNoLayout) != 0) ++timeline_.without_layout;
        return;
      case EventKind::ring_restart:
        return begin_ring(event);
      default:
        return;
    }
  }

  Timeline finish(const Definitions& definitions) {
    refresh();
    for (auto& [device, follower] : followers_) {
      timeline_.devices.emplace(device, follower.finish(device));
    }
    for (size_t i = 0; i < marks_.size(); ++i) {
      timeline_.marks[i].name = "mark:" + std::string(definitions.string(marks_[i]));
    }
    timeline_.end.step = state_.step();
    timeline_.end.name = "end";
    timeline_.threads = static_cast<uint64_t>(std::count(threads_.begin(), threads_.end(), true));
    timeline_.anomalies = state_.anomalies();
    return std::move(timeline_);
  }

 private:
  [[nodiscard]] Moment moment_of(const Event& event) const {
    return {.sequence = event.sequence,
            .time_ns = event.time_ns,
            .step = state_.step(),
            .device = known_device(event.device)};
  }

  void note_carried(const Event& event) {
    if (event.kind != EventKind::ring_peak) return;
    timeline_.earlier_peaks.push_back(
        {.what = static_cast<RingPeak>(event.object),
         .bytes = event.size,
         .moment = {.sequence = event.sequence,
                    .time_ns = event.time_ns,
                    .step = event.extra == 0 ? kNoStep : event.extra - 1,
                    .device = known_device(event.device)}});
  }

  void begin_ring(const Event& event) {
    --timeline_.events;  // it is the reader's own
    timeline_.ring_begin = moment_of(event);
    refresh();
    for (auto& [device, follower] : followers_) follower.observe(event, state_.step());
  }

  void note_thread(uint32_t thread) {
    if (thread >= threads_.size() && thread < (1U << 20)) threads_.resize(thread + 1U);
    if (thread < threads_.size()) threads_[thread] = true;
  }

  // A free may not name its device, so every device is looked at; there are few.
  void observe_ledgers(const Event& event) {
    const int16_t device_of_event = known_device(event.device);
    const bool of_blocks =
        event.kind >= EventKind::block_alloc && event.kind <= EventKind::snapshot_taken;
    ++(of_blocks ? timeline_.block_events : timeline_.physical_events);
    if (device_of_event < 0 || !followers_.contains(device_of_event)) refresh();
    for (auto& [device, follower] : followers_) {
      if (device_of_event < 0 || device == device_of_event) follower.observe(event, state_.step());
    }
    const auto follower = followers_.find(device_of_event);
    if (follower == followers_.end()) return;
    if (event.kind == EventKind::out_of_memory) {
      Moment moment = moment_of(event);
      moment.name = "oom";
      follower->second.result.ooms.push_back({.moment = moment,
                                              .size = event.size,
                                              .requested = event.requested,
                                              .stack = event.stack});
    } else if (event.kind == EventKind::physical_failed) {
      ++follower->second.result.failed_requests;
    }
  }

  void refresh() {
    for (const int16_t device : state_.devices()) {
      followers_[device].totals = &state_.totals(device);
    }
  }

  MemoryState state_;
  Timeline timeline_;
  std::map<int16_t, Follower> followers_;
  std::vector<StringId> marks_;
  std::vector<bool> threads_;
};

}  // namespace

const DeviceTimeline* Timeline::device(int16_t ordinal) const {
  const auto found = devices.find(ordinal);
  return found == devices.end() ? nullptr : &found->second;
}

uint64_t Timeline::allocated(int16_t ordinal, const DeviceTotals& totals) const {
  const DeviceTimeline* of_device = device(ordinal);
  return of_device == nullptr || of_device->has_blocks ? totals.allocated : totals.live();
}

Timeline survey(const Recording& recording) {
  Surveyor surveyor;
  Progress progress("Replaying", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    surveyor.observe(event);
    progress.advance();
    return true;
  });
  return surveyor.finish(recording.definitions());
}

}  // namespace vramtrack
