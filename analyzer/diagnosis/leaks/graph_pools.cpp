#include "diagnosis/leaks/graph_pools.h"

#include <algorithm>
#include <numeric>

namespace vramtrack {

void GraphPools::block_begun(const Block& block) {
  if ((block.flags & kEventCaptured) == 0 || block.origin != Block::Origin::allocator) return;
  if (!capturing_)
    captures_.push_back({.stack = block.stack, .device = block.device, .begun = samples_});
  capturing_ = true;
  stacks_in_capture_.insert(block.stack);
  fresh_.push_back(
      {.address = block.address, .device = block.device, .capture = captures_.size() - 1});
}

void GraphPools::apply(const Event& event) {
  if (event.kind == EventKind::graph_instantiate && capturing_) {
    Capture& capture = captures_.back();
    if (event.stack != 0) capture.stack = event.stack;
    stacks_of_[capture.stack].merge(stacks_in_capture_);
    stacks_in_capture_.clear();
    live_[event.object] = captures_.size() - 1;
    capturing_ = false;
  } else if (event.kind == EventKind::graph_exec_destroy) {
    const auto found = live_.find(event.object);
    if (found == live_.end()) return;
    captures_[found->second].ended = samples_;
    live_.erase(found);
  }
}

void GraphPools::sample(size_t index, const MemoryState& state) {
  samples_ = index + 1;
  if (captures_.empty()) return;
  for (const int16_t device : state.devices()) {
    const std::vector<Segment> segments = state.segments(device);
    for (const CapturedBlock& block : fresh_) {
      if (block.device != device) continue;
      auto segment =
          std::upper_bound(segments.begin(), segments.end(), block.address,
                           [](uint64_t address, const Segment& s) { return address < s.address; });
      if (segment == segments.begin()) continue;
      --segment;
      if (block.address >= segment->end()) continue;  // gone again
      std::vector<size_t>& served = pieces_[{device, segment->sequence}].captures;
      if (served.empty() || served.back() != block.capture) served.push_back(block.capture);
    }
    for (const Segment& segment : segments) {
      if (!segment.captured) continue;
      const auto found = pieces_.find({device, segment.sequence});
      if (found == pieces_.end()) continue;
      Piece& piece = found->second;
      piece.device = device;
      piece.address = segment.address;
      piece.last_seen = index;
      if (piece.changes.empty() || piece.changes.back().bytes != segment.size)
        piece.changes.push_back({.sample = index, .bytes = segment.size});
    }
  }
  for (auto& [key, piece] : pieces_)
    if (piece.last_seen != index && !piece.changes.empty() && piece.changes.back().bytes != 0)
      piece.changes.push_back({.sample = index, .bytes = 0});
  fresh_.clear();
}

// Captures that shared a segment shared the pool: each piece's pool by its number.
std::map<GraphPools::PieceKey, size_t> GraphPools::pools() const {
  std::vector<size_t> parent(captures_.size());
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root_of = [&parent](size_t capture) {
    while (parent[capture] != capture) capture = parent[capture] = parent[parent[capture]];
    return capture;
  };
  for (const auto& [key, piece] : pieces_)
    for (const size_t capture : piece.captures)
      parent[root_of(capture)] = root_of(piece.captures.front());
  std::map<PieceKey, size_t> pools;
  for (const auto& [key, piece] : pieces_) pools[key] = root_of(piece.captures.front());
  return pools;
}

// Whether a graph that this piece served lives at the sample: else the allocator may give it back
// when it needs room.
bool GraphPools::is_kept(const Piece& piece, size_t sample) const {
  return std::any_of(piece.captures.begin(), piece.captures.end(), [&](size_t capture) {
    return captures_[capture].begun <= sample && sample < captures_[capture].ended;
  });
}

void GraphPools::add(const Piece& piece, std::vector<double>& bytes,
                     std::vector<bool>& held) const {
  for (size_t i = 0; i < piece.changes.size(); ++i) {
    const Change& change = piece.changes[i];
    const size_t end = i + 1 < piece.changes.size() ? piece.changes[i + 1].sample : bytes.size();
    for (size_t at = change.sample; change.bytes != 0 && at < end; ++at) {
      if (!is_kept(piece, at)) continue;
      bytes[at] += static_cast<double>(change.bytes);
      held[at] = true;
    }
  }
}

GraphPool GraphPools::last_of(const std::vector<const Piece*>& pieces, size_t sample) const {
  GraphPool pool;
  pool.first_sample = sample;
  std::unordered_set<size_t> captures;
  for (const Piece* piece : pieces) {
    if (piece->changes.empty() || piece->changes.back().bytes == 0 || !is_kept(*piece, sample))
      continue;
    if (pool.segments++ == 0) pool.address = piece->address;
    pool.bytes += piece->changes.back().bytes;
    pool.first_sample = std::min(pool.first_sample, piece->changes.front().sample);
    for (const size_t capture : piece->captures)
      if (captures_[capture].ended > sample) captures.insert(capture);
  }
  pool.graphs = captures.size();
  return pool;
}

std::vector<GraphPoolSeries> GraphPools::finish(size_t samples) const {
  using Owner = std::pair<StackId, int16_t>;
  // A piece belongs to the line of the capture that it was made for.
  std::map<Owner, std::map<size_t, std::vector<const Piece*>>> by_owner;
  const std::map<PieceKey, size_t> pool_of = pools();
  for (const auto& [key, piece] : pieces_)
    by_owner[{captures_[piece.captures.front()].stack, piece.device}][pool_of.at(key)].push_back(
        &piece);
  std::vector<GraphPoolSeries> all;
  for (const auto& [owner, pools_of_owner] : by_owner) {
    GraphPoolSeries series{.stack = owner.first, .device = owner.second};
    series.bytes.assign(samples, 0);
    series.pools.assign(samples, 0);
    series.graphs.assign(samples, 0);
    for (const auto& [pool, pieces] : pools_of_owner) {
      std::vector<bool> held(samples, false);
      for (const Piece* piece : pieces) add(*piece, series.bytes, held);
      for (size_t at = 0; at < samples; ++at) series.pools[at] += held[at] ? 1 : 0;
      if (samples == 0 || !held.back()) continue;
      series.last_pools.push_back(last_of(pieces, samples - 1));
    }
    std::stable_sort(series.last_pools.begin(), series.last_pools.end(),
                     [](const GraphPool& a, const GraphPool& b) { return a.bytes > b.bytes; });
    const auto stacks = stacks_of_.find(owner.first);
    if (stacks != stacks_of_.end()) series.blocks_of = stacks->second;
    for (const Capture& capture : captures_) {
      if (capture.stack != owner.first || capture.device != owner.second) continue;
      for (size_t at = capture.begun; at < std::min(capture.ended, samples); ++at)
        ++series.graphs[at];
    }
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace vramtrack
