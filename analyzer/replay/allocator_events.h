// The events of a caching allocator, whoever recorded them. A snapshot has them as they are. Our
// own traces see segments from below, as what the driver handed out; those that blocks are cut from
// are told here as segment events, so that the replay needs one language only.
#ifndef VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_EVENTS_H
#define VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_EVENTS_H

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "trace/recording.h"

namespace vramtrack {

// Learns in one pass what serves as a segment; then passes over the recording any number of times.
class AllocatorEvents {
 public:
  explicit AllocatorEvents(const Recording& recording);

  // Block and segment events of `device`, and OOMs, in order, until `visit` returns false.
  void for_each(int16_t device, const std::function<bool(const Event&)>& visit) const;

  // Block events each device has, beyond the reconstructed beginning.
  [[nodiscard]] const std::map<int16_t, uint64_t>& block_events() const { return block_events_; }
  [[nodiscard]] const Recording& recording() const { return recording_; }

 private:
  // A driver allocation, or a reserved address range, that blocks are cut from.
  struct Home {
    uint64_t size = 0;
    uint64_t stream = 0;
    uint64_t pool = 0;
    bool small = false;
    bool used = false;
    int16_t device = -1;
    uint64_t sequence = 0;  // of the event that made it
  };
  using Homes = std::map<uint64_t, Home>;

  void learn(const Event& event, Homes& allocations, Homes& ranges);
  void use(Homes& homes, const Event& block);
  void keep(const Homes::value_type& entry);
  bool translate(const Event& event, Event& out, Homes& open,
                 std::map<uint64_t, Event>& freeing) const;

  const Recording& recording_;
  bool has_segment_events_ = false;
  std::unordered_map<uint64_t, Home> segments_;  // by the sequence of the event that made them
  std::map<int16_t, uint64_t> block_events_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_EVENTS_H
