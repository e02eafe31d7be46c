// The facts of an out-of-memory event in a recording: the state at that event (not at the end, when
// frames have unwound and let go), who held what, what was free and why it did not serve, and how
// it came to that.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_SCENE_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_SCENE_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/oom/oom_holders.h"
#include "replay/timeline.h"
#include "trace/recording.h"

namespace vramtrack {

// A line of the program and what it had live at the event.
struct SiteShare {
  std::string site;
  std::string category;  // the row that most of its bytes are in
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t largest = 0;
  std::vector<SiteHolder> holders;  // who keeps it, where the helper said so
};

// Memory that the pool holds and nothing uses, at the event.
struct FreeSpace {
  uint64_t total = 0;
  uint64_t largest = 0;           // the largest piece, wherever it lies
  uint64_t largest_eligible = 0;  // among the pieces that the request may use: its pool and stream
  uint64_t pieces = 0;
  uint64_t pending = 0;  // freed, a stream not done
  uint64_t segments = 0;
  uint64_t split_segments = 0;  // with live blocks and holes: they cannot be given back
  bool expandable = false;      // any segment is
};

struct LargestBlock {
  uint64_t bytes = 0;
  std::string site;
  std::string category;
  bool of_this_step = false;
};

struct StepLevel {
  uint64_t step = 0;
  uint64_t live = 0;  // at the step's beginning
};

// What a line kept more of, from the first of the compared steps to the last.
struct SiteGrowth {
  std::string site;
  int64_t bytes = 0;
  int64_t blocks = 0;
};

struct OomScene {
  bool found = false;  // the recording holds an OOM; else all below is of the allocated peak
  int16_t device = -1;
  Moment moment;
  uint64_t oom_events = 0;
  bool has_history = true;         // false: a snapshot of one moment, nothing is known of before
  uint64_t refused_by_driver = 0;  // requests that the driver refused, the OOM's own included
  // A trace with a caching allocator that gave up although the driver had refused nothing.
  bool gave_up_unrefused = false;
  Memory memory = Memory::device;  // of the request: pinned memory is the host's

  uint64_t ask = 0;        // as the allocator asked the driver, or rounded
  uint64_t requested = 0;  // as the program asked, 0 unknown
  uint64_t stream = 0;
  std::string request_site;
  std::vector<std::string> request_stack;  // the program's part, for people, innermost first
  bool request_is_lasting = false;         // parameters or optimizer state are being made

  std::optional<uint64_t> total;  // of the device
  std::optional<uint64_t> free;
  bool free_is_recorded = false;  // of that moment; else an earlier measurement, carried forward
  std::optional<uint64_t> others;
  std::optional<uint64_t> outside;

  bool has_blocks = false;
  DeviceTotals totals;
  FreeSpace space;
  std::map<std::string, uint64_t> categories;
  std::vector<SiteShare> sites;  // by bytes
  LargestBlock largest_block;
  std::vector<SiteShare>
      direct_sites;  // of memory beside the caching allocator, where there is one

  std::vector<StepLevel> steps;  // the last ones before the event
  std::vector<SiteGrowth> growth;
  uint64_t live_at_end = 0;
  bool ended_later = false;  // events follow the OOM
};

// `device` -1: the one whose OOM came last; without any OOM the one with the highest peak. Throws
// InputError where the recording has no device at all.
OomScene look_at_oom(const Recording& recording, int16_t device);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_OOM_SCENE_H
