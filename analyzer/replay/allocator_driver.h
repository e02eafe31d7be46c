// Feeds the requests of one device of a recording to a simulated allocator, event by event.
//
//   follow   segments are placed where the recording has them, and every segment event and block
//            address is compared: does the simulator do what the real allocator did?
//   suppose  the simulator places them itself, under settings of the caller's choice
//
// A run of segments that go back to the driver was either asked for (empty_cache) or the last
// resort before an out-of-memory error. The first is repeated in a supposed run, the second is
// left to the simulator.
#ifndef VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_DRIVER_H
#define VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_DRIVER_H

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/allocator_simulator.h"
#include "trace/recording.h"

namespace vramtrack {

// How a supposed run treats what was there before the recording began.
enum class Beginning {
  keep,    // the segments stay as they were recorded
  repack,  // the live blocks are requested anew, in the order of their addresses
};

// Where a supposed run puts new segments. Among free blocks of equal size the lowest address wins,
// so that the driver's choice of addresses has a say in what follows.
enum class Placement {
  like_recorded,  // where the recording has one of that size, else below all others, as drivers do
  ascending,      // above all others
};

// What a supposed run takes for the request where only the block's size is known.
enum class UnknownRequest { largest, smallest };

struct DriverCounts {
  uint64_t requests = 0;
  uint64_t addresses_equal = 0;
  uint64_t segment_events = 0;  // of the recording, after its beginning
  uint64_t segment_events_equal = 0;
  uint64_t lost_blocks = 0;       // events of blocks that the simulator does not know
  uint64_t rounded_requests = 0;  // requests of which only the rounded size is known
  uint64_t recorded_reserved_peak = 0;
  uint64_t recorded_reserved_end = 0;
  uint64_t failed_requests = 0;  // the simulator found no memory for them
  uint64_t cache_releases = 0;   // asked for by the program
  uint64_t last_resorts = 0;     // the allocator's own, before it would have given up
  bool began_empty = true;
  bool oom_recorded = false;
  bool oom_served = false;  // the simulator had room for the request that failed
  uint64_t oom_size = 0;
  uint64_t oom_capacity = 0;     // reserved by this allocator plus free on the device, at the OOM
  std::string first_difference;  // follow: where the simulator left the recording
};

class AllocatorDriver {
 public:
  enum class Mode { follow, suppose };

  AllocatorDriver(const Definitions& definitions, int16_t device, AllocatorSettings settings,
                  Mode mode, AllocatorSimulator::Limits limits = {});
  void set_beginning(Beginning beginning) { beginning_ = beginning; }
  void set_unknown_request(UnknownRequest unknown) { unknown_ = unknown; }
  void set_tie_break(TieBreak tie_break) { simulator_.set_tie_break(tie_break); }
  void set_placement(Placement placement) { placement_ = placement; }
  // Ends the run at the first recorded OOM: what the program did afterwards depends on it.
  void stop_at_oom() { stop_at_oom_ = true; }

  // False where the run is over.
  bool apply(const Event& event);
  void finish();

  [[nodiscard]] const AllocatorSimulator& simulator() const { return simulator_; }
  [[nodiscard]] const DriverCounts& counts() const { return counts_; }

 private:
  void begin_segment(const Event& event);
  void begin_block(const Event& event);
  void record_segment(const Event& event);
  void settle_releases(const Event* next);
  bool is_last_resort(const Event* next) const;
  void allocate(const Event& event);
  void free_block(const Event& event, bool completed);
  bool out_of_memory(const Event& event);
  void compare_segments(std::string_view where);
  void differ(std::string text);
  uint64_t request_of(const Event& event);
  uint64_t place_as_recorded(bool range);
  uint64_t place_supposed(uint64_t size, bool range);
  void track_segment(const SegmentChange& change);
  [[nodiscard]] bool is_vacant(uint64_t address, uint64_t size) const;

  const Definitions& definitions_;
  int16_t device_;
  Mode mode_;
  Beginning beginning_ = Beginning::keep;
  UnknownRequest unknown_ = UnknownRequest::largest;
  bool stop_at_oom_ = false;
  AllocatorSimulator simulator_;
  std::unordered_map<uint64_t, SimulatedBlock*> blocks_;  // by recorded address
  Placement placement_ = Placement::like_recorded;
  std::unordered_map<uint64_t, std::vector<uint64_t>> recorded_places_;  // by size, newest last
  std::map<uint64_t, uint64_t> occupied_;  // segments of a supposed run, address and size
  uint64_t next_below_ = ~uint64_t{0};
  uint64_t next_above_ = 0;
  std::vector<SegmentChange> expected_;  // recorded, not yet matched
  std::vector<SegmentChange> happened_;
  StackId release_stack_ = 0;
  bool releasing_ = false;
  uint64_t recorded_reserved_ = 0;
  uint64_t event_number_ = 0;
  DriverCounts counts_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPLAY_ALLOCATOR_DRIVER_H
