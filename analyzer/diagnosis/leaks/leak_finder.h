// What grows in a long job, from which line, since when, and when it will die.
//
// A stack leaks when its live bytes at the ends of steps rise: surely (Mann-Kendall with a
// correction for memory, false discoveries controlled over all stacks), still at the end (not a
// warm-up, not a cache that fills up), and by keeping blocks rather than by replacing one with a
// larger one (a KV cache within a generation).
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LEAK_FINDER_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LEAK_FINDER_H

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/leaks/graph_pool_growth.h"
#include "diagnosis/leaks/holders.h"
#include "diagnosis/leaks/live_series.h"
#include "diagnosis/leaks/never_freed.h"
#include "diagnosis/leaks/trend.h"

namespace vramtrack {

struct LeakFinding {
  enum class Kind {
    live_growth,         // blocks are kept, step after step
    growing_buffer,      // blocks are replaced by larger ones: growth within a generation
    fragmentation,       // reserved rises, what is allocated does not
    host_pinned_growth,  // page-locked host memory
    graph_pools,         // private pools of CUDA graphs: ever more graphs are captured
    outside_growth,      // of the device, but not of what this process was handed out
    library_growth,      // taken from the driver by something that is no caching allocator
  };
  Kind kind = Kind::live_growth;
  int16_t device = -1;
  Memory memory = Memory::none;
  std::string site;             // the user's line; empty for fragmentation
  std::vector<StackId> stacks;  // largest growth first
  Trend trend;                  // bytes per sample; see bytes_per_step
  double bytes_per_step = 0;    // per sample where the recording has no steps
  double bytes_per_step_low = 0;
  double bytes_per_step_high = 0;
  double grown_bytes = 0;              // from its first to its last sample
  double live_bytes = 0;               // at the last sample
  double live_blocks = 0;              // likewise
  double standard_error = 0;           // of live_bytes, where blocks are sampled
  uint64_t first_step = 0;             // step (or sample) at which the growth began
  double confidence = 0;               // 0 .. 1
  std::optional<double> steps_to_oom;  // at this rate, where the device's size is known
  std::string why;                     // the evidence in words
  std::vector<Holder> holders;         // who holds it, by the helper
  std::optional<GraphPoolSite> graph_pools;
  std::string advice;  // what to do, where the kind says it
};

struct LeakReport {
  bool by_step = false;
  bool by_period = false;   // no steps were recorded: periods were found
  std::string period_site;  // whose allocation begins each of them
  bool sampled = false;     // blocks are sampled: bytes are estimates
  uint64_t samples = 0;
  uint64_t warm_up_samples = 0;
  uint64_t steps = 0;
  uint64_t stacks_tested = 0;
  std::vector<LeakFinding> findings;    // leaks, by rate
  std::vector<LeakFinding> not_leaks;   // growth that is told apart: growing buffers
  std::vector<Holder> holders;          // all that the helper said
  std::vector<NeverFreed> never_freed;  // live at the end, largest first
  std::vector<std::string> notes;       // "too few steps to tell" ...
};

LeakReport find_leaks(const Recording& recording, const Timeline& timeline);

std::string_view name_of(LeakFinding::Kind kind);
// Whether this program keeps what it should give back. The others fill the device all the same.
bool is_leak(LeakFinding::Kind kind);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LEAK_FINDER_H
