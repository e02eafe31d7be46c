// Growth of the private pools of CUDA graphs, by the line that captures: one graph for each shape
// that comes along, each with a pool of its own.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOL_GROWTH_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOL_GROWTH_H

#include <string>
#include <unordered_set>
#include <vector>

#include "diagnosis/leaks/live_series.h"

namespace vramtrack {

// All captures of one line of the user's.
struct GraphPoolSite {
  std::string name;
  int16_t device = -1;
  std::vector<StackId> stacks;  // of the captures
  std::vector<double> bytes;
  std::vector<double> pools;
  std::vector<double> graphs;
  std::vector<GraphPool> last_pools;
  std::unordered_set<StackId> blocks_of;
};

std::vector<GraphPoolSite> graph_pool_sites(const LiveSeries& series,
                                            const Definitions& definitions);

// Of one device: bytes of all graph pools, and of the live blocks that were captured.
std::vector<double> graph_pool_bytes(const LiveSeries& series, int16_t device);
std::vector<double> captured_bytes(const LiveSeries& series, int16_t device);

// What to do about it.
std::string graph_pool_advice(const GraphPoolSite& site);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOL_GROWTH_H
