// Live bytes per call stack, sampled at the boundaries of steps: what leak detection looks at.
//
// One pass; memory is bounded by the number of stacks times kMostSamples, however long the job was.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LIVE_SERIES_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LIVE_SERIES_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/leaks/graph_pools.h"
#include "replay/timeline.h"

namespace vramtrack {

// What one stack held at each sample. Both series have as many values as LiveSeries::samples.
struct StackSeries {
  StackId stack = 0;
  int16_t device = -1;  // -1: host memory
  Memory memory = Memory::none;
  std::vector<double> bytes;
  std::vector<double> blocks;  // how many were live
  // Of the blocks that are live at the last sample: how many were made in the newest tenth of the
  // samples. All of them: the memory is replaced again and again, not kept.
  double young_share = 0;
  double variance = 0;        // of the bytes at the last sample, where they are estimates
  bool captured = false;      // made while a graph was captured: in the graph's private pool
  bool direct = false;        // from the driver, past every caching allocator that reports
  uint64_t first_sample = 0;  // index of the first sample at which it held anything
};

struct LiveSeries {
  static constexpr size_t kMostSamples = 512;

  // Where the samples lie. Steps of the program where it has them, else what it repeats, else
  // stretches of equally many events, each sampled where the least was allocated.
  bool by_step = false;
  bool by_period = false;
  StackId period_stack = 0;  // whose allocation begins each period
  uint64_t periods = 0;
  double steps_per_sample = 1;
  std::vector<uint64_t> steps;    // number of the step that ends at the sample; empty without steps
  std::vector<uint64_t> time_ns;  // of each sample
  std::vector<StackSeries> stacks;
  std::vector<GraphPoolSeries> graph_pools;
  std::map<int16_t, std::vector<double>> allocated;  // per device
  std::map<int16_t, std::vector<double>> reserved;
  std::map<int16_t, std::vector<double>> in_use;
  // Used beyond what this process was handed out, as last measured: contexts and other processes.
  std::map<int16_t, std::vector<double>> outside;
  std::vector<double> pinned;

  [[nodiscard]] size_t samples() const { return time_ns.size(); }
};

LiveSeries sample_live_bytes(const Recording& recording, const Timeline& timeline);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_LIVE_SERIES_H
