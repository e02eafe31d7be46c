#include "diagnosis/leaks/live_series.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace vramtrack {
namespace {

// Sequence numbers after which to sample, and the steps that end there.
struct Plan {
  std::vector<uint64_t> sequences;
  std::vector<uint64_t> steps;
  double steps_per_sample = 1;
};

// A step event begins a step: what is live just before it is what the step before left behind.
Plan plan_by_step(const Timeline& timeline) {
  Plan plan;
  const size_t count = timeline.steps.size();
  const size_t stride = (count + LiveSeries::kMostSamples - 1) / LiveSeries::kMostSamples;
  for (size_t i = stride; i < count; i += stride) {
    plan.sequences.push_back(timeline.steps[i].sequence);
    plan.steps.push_back(timeline.steps[i - 1].step);
  }
  plan.steps_per_sample = static_cast<double>(stride);
  return plan;
}

// What repeats: a stack whose blocks come at regular distances, once in each period. Most stacks of
// a loop are met equally often, so the commonest number of times is the number of periods; a
// leaking stack, a warm-up or an evaluation has numbers of its own.
struct Period {
  StackId stack = 0;
  uint64_t times = 0;
};

struct Rhythm {
  uint64_t times = 0;
  uint64_t first = 0;  // counted in blocks
  uint64_t last = 0;
  double squares = 0;  // of the distances
};

std::optional<Period> find_period(const Recording& recording) {
  constexpr uint64_t kFewest = 16;
  std::unordered_map<StackId, Rhythm> rhythms;
  uint64_t blocks = 0;
  recording.for_each([&](const Event& event) {
    const bool allocation =
        event.kind == EventKind::block_alloc || event.kind == EventKind::physical_alloc;
    if (!allocation || event.stack == 0 || (event.flags & kEventCarried) != 0) return true;
    Rhythm& rhythm = rhythms[event.stack];
    ++blocks;
    if (rhythm.times++ == 0) {
      rhythm.first = blocks;
    } else {
      const auto distance = static_cast<double>(blocks - rhythm.last);
      rhythm.squares += distance * distance;
    }
    rhythm.last = blocks;
    return true;
  });
  std::map<uint64_t, uint64_t> stacks_met;  // so many times -> stacks
  for (const auto& [stack, rhythm] : rhythms)
    if (rhythm.times >= kFewest) ++stacks_met[rhythm.times];
  const auto commonest =
      std::max_element(stacks_met.begin(), stacks_met.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (commonest == stacks_met.end() || commonest->second < 2) return std::nullopt;
  std::optional<Period> found;
  double best = 0.3;  // of the distances' spread: more is no rhythm
  for (const auto& [stack, rhythm] : rhythms) {
    if (rhythm.times != commonest->first) continue;
    const auto distances = static_cast<double>(rhythm.times - 1);
    const double mean = static_cast<double>(rhythm.last - rhythm.first) / distances;
    const double variance = std::max(0.0, rhythm.squares / distances - mean * mean);
    const double spread = std::sqrt(variance) / mean;
    const bool covers = rhythm.last - rhythm.first > blocks / 2;
    if (!covers || spread > best || (found && spread == best && stack > found->stack)) continue;
    best = spread;
    found = {.stack = stack, .times = rhythm.times};
  }
  return found;
}

Plan plan_by_period(const Recording& recording, const Period& period) {
  Plan plan;
  const uint64_t stride = (period.times + LiveSeries::kMostSamples - 1) / LiveSeries::kMostSamples;
  uint64_t met = 0;
  recording.for_each([&](const Event& event) {
    const bool allocation =
        event.kind == EventKind::block_alloc || event.kind == EventKind::physical_alloc;
    if (!allocation || event.stack != period.stack || (event.flags & kEventCarried) != 0)
      return true;
    if (met != 0 && met % stride == 0) {
      plan.sequences.push_back(event.sequence);
      plan.steps.push_back(met - 1);
    }
    ++met;
    return true;
  });
  plan.steps_per_sample = static_cast<double>(stride);
  return plan;
}

// Without steps or periods: the quietest instant of each of equally long stretches of events.
// Programs that repeat themselves return to their floor in each stretch that covers a period.
Plan plan_by_events(const Recording& recording, const Timeline& timeline) {
  constexpr uint64_t kStretches = 128;
  const uint64_t memory_events = timeline.block_events + timeline.physical_events;
  const uint64_t width = std::max<uint64_t>(memory_events / kStretches, 1);
  Plan plan;
  MemoryState state;
  uint64_t seen = 0;
  uint64_t least = ~uint64_t{0};
  uint64_t least_sequence = 0;
  recording.for_each([&](const Event& event) {
    state.apply(event);
    if ((event.flags & kEventCarried) != 0) return true;
    uint64_t live = 0;
    for (const auto& [device, unused] : timeline.devices) live += state.totals(device).live();
    if (live < least) {
      least = live;
      least_sequence = event.sequence + 1;  // sampled before the event that follows
    }
    if (++seen % width == 0) {
      plan.sequences.push_back(least_sequence);
      least = ~uint64_t{0};
    }
    return true;
  });
  return plan;
}

using Owner = std::tuple<StackId, int16_t, Memory, bool>;  // the last: captured

struct OwnerHash {
  size_t operator()(const Owner& owner) const {
    const auto [stack, device, memory, captured] = owner;
    return (static_cast<size_t>(stack) << 24) ^
           (static_cast<size_t>(static_cast<uint16_t>(device)) << 8) ^
           (static_cast<size_t>(memory) << 1) ^ (captured ? 1U : 0U);
  }
};

// Follows what each stack holds. A block's identity is the sequence number of its allocation.
class Holdings : public BlockListener {
 public:
  explicit Holdings(GraphPools& graph_pools) : graph_pools_(graph_pools) {}

  void block_begun(const Block& block) override {
    graph_pools_.block_begun(block);
    Holding& holding = of(block);
    holding.bytes += block.bytes();
    holding.variance += block.variance();
    ++holding.blocks;
    holding.live.insert(block.sequence);
    holding.series.direct = block.origin != Block::Origin::allocator;
  }
  void block_ended(const Block& block, const Event& /*event*/, End /*end*/) override {
    Holding& holding = of(block);
    if (holding.live.erase(block.sequence) == 0) return;
    holding.bytes -= block.bytes();
    holding.variance -= block.variance();
    --holding.blocks;
  }

  void sample(size_t index, size_t most) {
    for (auto& [owner, holding] : holdings_) {
      if (holding.blocks == 0 && holding.series.bytes.empty()) continue;
      if (holding.series.bytes.empty()) {
        holding.series.bytes.assign(most, 0);
        holding.series.blocks.assign(most, 0);
        holding.series.first_sample = index;
      }
      holding.series.bytes[index] = static_cast<double>(holding.bytes);
      holding.series.blocks[index] = static_cast<double>(holding.blocks);
    }
  }

  // `young_since`: sequence number from which on a block counts as young.
  std::vector<StackSeries> finish(uint64_t young_since) {
    std::vector<StackSeries> all;
    for (auto& [owner, holding] : holdings_) {
      if (holding.series.bytes.empty()) continue;
      std::tie(holding.series.stack, holding.series.device, holding.series.memory,
               holding.series.captured) = owner;
      double young = 0;
      for (const uint64_t sequence : holding.live) young += sequence >= young_since ? 1 : 0;
      if (!holding.live.empty())
        holding.series.young_share = young / static_cast<double>(holding.live.size());
      holding.series.variance = std::max(holding.variance, 0.0);
      all.push_back(std::move(holding.series));
    }
    // The map's order is nobody's; reports must not change from run to run.
    std::sort(all.begin(), all.end(), [](const StackSeries& a, const StackSeries& b) {
      return std::tie(a.device, a.memory, a.stack, a.captured) <
             std::tie(b.device, b.memory, b.stack, b.captured);
    });
    return all;
  }

 private:
  struct Holding {
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    double variance = 0;
    std::unordered_set<uint64_t> live{};
    StackSeries series{};
  };

  Holding& of(const Block& block) {
    const bool captured = (block.flags & kEventCaptured) != 0;
    return holdings_[{block.stack, block.device, block.memory, captured}];
  }

  GraphPools& graph_pools_;
  std::unordered_map<Owner, Holding, OwnerHash> holdings_;
};

}  // namespace

LiveSeries sample_live_bytes(const Recording& recording, const Timeline& timeline) {
  LiveSeries series;
  series.by_step = timeline.steps.size() >= 8;
  Plan plan;
  if (series.by_step) {
    plan = plan_by_step(timeline);
  } else if (const std::optional<Period> period = find_period(recording)) {
    plan = plan_by_period(recording, *period);
    series.by_period = true;
    series.period_stack = period->stack;
    series.periods = period->times;
  } else {
    plan = plan_by_events(recording, timeline);
  }
  series.steps = plan.steps;
  series.steps_per_sample = plan.steps_per_sample;

  MemoryState state;
  GraphPools graph_pools;
  Holdings holdings(graph_pools);
  state.set_listener(&holdings);
  const size_t count = plan.sequences.size();
  const auto take_sample = [&](uint64_t time_ns) {
    holdings.sample(series.time_ns.size(), count);
    graph_pools.sample(series.time_ns.size(), state);
    series.time_ns.push_back(time_ns);
    for (const auto& [device, unused] : timeline.devices) {
      const DeviceTotals& totals = state.totals(device);
      series.allocated[device].push_back(static_cast<double>(totals.live()));
      series.reserved[device].push_back(static_cast<double>(totals.reserved));
      series.in_use[device].push_back(static_cast<double>(totals.in_use));
      const Outside outside = state.outside(device);
      series.outside[device].push_back(static_cast<double>(outside.context) +
                                       static_cast<double>(outside.residual));
    }
    series.pinned.push_back(static_cast<double>(state.host().pinned));
  };
  recording.for_each([&](const Event& event) {
    while (series.samples() < count && (event.flags & kEventCarried) == 0 &&
           event.sequence >= plan.sequences[series.samples()])
      take_sample(event.time_ns);
    graph_pools.apply(event);
    state.apply(event);
    return series.samples() < count;
  });
  while (series.samples() < count) take_sample(timeline.end.time_ns);

  const uint64_t young_since = count == 0 ? 0 : plan.sequences[count - 1 - count / 10];
  series.stacks = holdings.finish(young_since);
  series.graph_pools = graph_pools.finish(count);
  return series;
}

}  // namespace vramtrack
