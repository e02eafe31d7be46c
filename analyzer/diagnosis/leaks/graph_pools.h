// The private pools of CUDA graphs in a recording: what each capture made the caching allocator
// reserve, and for how long it must keep it.
//
// While a stream is captured PyTorch serves it from a pool of the graph's own, in segments that
// nothing else may use as long as the graph lives, whether blocks in them are live or not. So what
// a graph costs is its segments; its blocks show a part of it.
//
// The number of a pool is not recorded. Captures that were served from the same segment shared
// their pool; a capture is told from the next by the graph that was made of it.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOLS_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOLS_H

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "replay/state.h"

namespace vramtrack {

// One pool, by what is known of it.
struct GraphPool {
  uint64_t address = 0;  // of the segment that it began with
  uint64_t bytes = 0;    // of its segments
  size_t segments = 0;
  size_t graphs = 0;  // live ones that were captured into it
  size_t first_sample = 0;
};

// What the captures of one stack hold. All series have as many values as there are samples.
struct GraphPoolSeries {
  StackId stack = 0;  // that made the graphs executable
  int16_t device = -1;
  std::vector<double> bytes;              // of segments that live graphs keep
  std::vector<double> pools;              // how many they are in
  std::vector<double> graphs;             // that were captured there and live
  std::vector<GraphPool> last_pools;      // at the last sample, largest first
  std::unordered_set<StackId> blocks_of;  // stacks whose blocks lie in them
};

class GraphPools {
 public:
  void block_begun(const Block& block);  // any
  void apply(const Event& event);        // any, before the state has it
  void sample(size_t index, const MemoryState& state);
  [[nodiscard]] std::vector<GraphPoolSeries> finish(size_t samples) const;

 private:
  static constexpr size_t kNever = ~size_t{0};

  struct Capture {
    StackId stack = 0;  // of the graph; of the capture's first block as long as there is none
    int16_t device = -1;
    size_t begun = 0;       // the first sample with it
    size_t ended = kNever;  // the first sample without its graph
  };
  struct CapturedBlock {
    uint64_t address = 0;
    int16_t device = -1;
    size_t capture = 0;
  };
  struct Change {
    size_t sample = 0;
    uint64_t bytes = 0;
  };
  struct Piece {  // a segment
    int16_t device = -1;
    std::vector<size_t> captures{};  // that it served, ascending
    uint64_t address = 0;
    std::vector<Change> changes{};  // of its size
    size_t last_seen = 0;
  };
  using PieceKey = std::pair<int16_t, uint64_t>;  // device, sequence number of the segment

  [[nodiscard]] std::map<PieceKey, size_t> pools() const;
  [[nodiscard]] GraphPool last_of(const std::vector<const Piece*>& pieces, size_t sample) const;
  [[nodiscard]] bool is_kept(const Piece& piece, size_t sample) const;
  void add(const Piece& piece, std::vector<double>& bytes, std::vector<bool>& held) const;

  std::vector<Capture> captures_;
  bool capturing_ = false;
  size_t samples_ = 0;
  std::unordered_map<uint64_t, size_t> live_;  // executable graph -> capture
  std::vector<CapturedBlock> fresh_;           // since the last sample
  std::map<PieceKey, Piece> pieces_;
  std::unordered_set<StackId> stacks_in_capture_;
  std::unordered_map<StackId, std::unordered_set<StackId>> stacks_of_;  // graph's -> blocks'
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_GRAPH_POOLS_H
