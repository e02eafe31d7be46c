#include "report/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "attribution/evidence.h"
#include "replay/progress.h"
#include "trace/input_error.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr uint64_t kSmallestBlock = 512;  // a counter, not keys of a layer

// Follows the cache through a recording and closes a round whenever the next forward pass begins:
// it looks up the embedding of its token first. While a layer stores its keys the old ones live
// beside the new; the cache is therefore read when something else is allocated next.
class RoundFinder {
 public:
  RoundFinder(const StackTraitsCache& traits, int16_t device) : traits_(traits), device_(device) {}

  void before(const Event& event, const MemoryState& state) {
    if (event.device != device_) return;
    if (event.kind == EventKind::block_free) {
      const auto found = cache_.find(event.address);
      if (found == cache_.end()) return;
      bytes_ -= found->second;
      cache_.erase(found);
    }
    if (event.kind != EventKind::block_alloc) return;
    const StackTraits& traits = traits_.of(event.stack);
    if (traits.has(Trait::cache_update)) {
      remember(event);
      return;
    }
    if (storing_) read(state);
    if (traits.has(Trait::embedding) && traits.activity() == Activity::forward) close();
  }

  void after(const Event& event, const MemoryState& state) {
    if (event.kind != EventKind::block_alloc || event.device != device_) return;
    const uint64_t allocated = state.totals(device_).allocated;
    if (allocated <= highest_) return;
    highest_ = allocated;
    round_.peak = moment_of(state, "peak");
  }

  std::vector<DecodeRound> take(const MemoryState& state) {
    if (storing_) read(state);
    close();
    return std::move(rounds_);
  }

 private:
  void remember(const Event& event) {
    const uint64_t bytes = event.requested != 0 ? event.requested : event.size;
    if (event.size <= kSmallestBlock && event.requested == 0) return;
    uint64_t& kept = cache_[event.address];
    bytes_ += bytes - kept;
    kept = bytes;
    storing_ = true;
  }

  Moment moment_of(const MemoryState& state, const char* name) const {
    return {.sequence = state.sequence(),
            .time_ns = state.time_ns(),
            .step = state.step(),
            .device = device_,
            .name = name};
  }

  void read(const MemoryState& state) {
    round_.end = moment_of(state, "round");
    round_.kv_bytes = bytes_;
    round_.kv_blocks = cache_.size();
    storing_ = false;
    stored_ = true;
  }

  void close() {
    if (stored_) rounds_.push_back(round_);
    round_ = {};
    highest_ = 0;
    stored_ = false;
  }

  const StackTraitsCache& traits_;
  int16_t device_;
  std::unordered_map<uint64_t, uint64_t> cache_;  // live blocks: address -> bytes
  uint64_t bytes_ = 0;
  DecodeRound round_;
  uint64_t highest_ = 0;
  bool storing_ = false;
  bool stored_ = false;
  std::vector<DecodeRound> rounds_;
};

// A cache that shrinks, or more blocks than before, is another generation's.
bool continues(const DecodeRound& before, const DecodeRound& after) {
  return after.kv_bytes >= before.kv_bytes && after.kv_blocks == before.kv_blocks;
}

std::vector<DecodeRound> longest_run(const std::vector<DecodeRound>& rounds, size_t& runs) {
  std::vector<DecodeRound> best;
  runs = 0;
  for (size_t begin = 0; begin < rounds.size();) {
    size_t end = begin + 1;
    while (end < rounds.size() && continues(rounds[end - 1], rounds[end])) ++end;
    if (end - begin >= 2) ++runs;
    if (end - begin > best.size())
      best.assign(rounds.begin() + static_cast<std::ptrdiff_t>(begin),
                  rounds.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return best;
}

void find_rate(Generation& g) {
  std::vector<uint64_t> added;
  for (size_t i = 1; i < g.rounds.size(); ++i)
    added.push_back(g.rounds[i].kv_bytes - g.rounds[i - 1].kv_bytes);
  std::vector<uint64_t> sorted = added;
  std::sort(sorted.begin(), sorted.end());
  g.bytes_per_token = static_cast<double>(sorted[sorted.size() / 2]);
  g.steady = sorted.front() == sorted.back();
  if (g.bytes_per_token > 0)
    g.prompt_tokens = static_cast<double>(g.rounds.front().kv_bytes) / g.bytes_per_token;
  const uint64_t blocks = g.rounds.back().kv_blocks;
  if (g.steady && blocks % 2 == 0) g.layers = blocks / 2;
}

}  // namespace

Generation find_generation(const Recording& recording, int16_t device) {
  const StackTraitsCache traits(recording.definitions());
  MemoryState state;
  RoundFinder finder(traits, device);
  Progress progress("Replaying", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    finder.before(event, state);
    state.apply(event);
    finder.after(event, state);
    progress.advance();
    return true;
  });
  Generation g;
  g.rounds = longest_run(finder.take(state), g.generations);
  if (g.rounds.size() < 3)
    throw InputError(fmt::format(
        "{} decodes no tokens one after the other, so one recording alone shows no growth: give "
        "several, and --by NAME=VALUE,VALUE,...",
        recording.info().path));
  find_rate(g);
  return g;
}

GrowthTable generation_table(const Recording& recording, const Generation& generation,
                             int16_t device) {
  constexpr size_t kMostRounds = 9;
  const Timeline timeline = survey(recording);
  // The prompt's pass is of another kind: all its tokens at once.
  const size_t decoded = generation.rounds.size() - 1;
  const size_t chosen = std::min(decoded, kMostRounds);
  std::vector<GrowthSums> sums;
  for (size_t i = 0; i < chosen; ++i) {
    const size_t round = chosen == 1 ? 1 : 1 + i * (decoded - 1) / (chosen - 1);
    const DecodeRound& at = generation.rounds[round];
    Moment end = at.end;
    end.name = "between tokens-peak";
    GrowthSums one = growth_sums_at(recording, timeline, device, {at.peak, end});
    one.x = generation.tokens(round);
    one.activity = "forward";
    one.moment = "the peak of each token's pass";
    sums.push_back(std::move(one));
  }
  GrowthTable table = growth_table_of("tokens", device, sums);
  table.simulated = recording.info().simulated;
  return table;
}

std::string generation_text(const Generation& g) {
  const auto whole = [](double value) { return static_cast<uint64_t>(std::llround(value)); };
  if (g.bytes_per_token == 0)
    return fmt::format("KV cache: {}, taken in full before the first token; it does not grow\n",
                       quantity(g.rounds.back().kv_bytes));
  std::string out = fmt::format(
      "KV cache: {} bytes per token{}, {} tokens of prompt, {} decoded: {} in the end\n",
      grouped(whole(g.bytes_per_token)), g.steady ? "" : " (median: not every token adds as much)",
      whole(g.prompt_tokens), g.rounds.size() - 1, quantity(g.rounds.back().kv_bytes));
  if (g.layers != 0)
    out +=
        fmt::format("  = 2 x {} layers x {} bytes (key/value heads x head size x bytes x batch)\n",
                    g.layers, grouped(whole(g.bytes_per_token) / (2 * g.layers)));
  if (g.generations > 1)
    out += fmt::format("  the longest of {} generations in the recording\n", g.generations);
  return out;
}

nlohmann::ordered_json generation_json(const Generation& g) {
  return {{"generations", g.generations},
          {"decoded_tokens", g.rounds.size() - 1},
          {"prompt_tokens", g.prompt_tokens},
          {"kv_bytes_per_token", g.bytes_per_token},
          {"steady", g.steady},
          {"layers", g.layers != 0 ? nlohmann::ordered_json(g.layers) : nullptr},
          {"kv_bytes_first", g.rounds.front().kv_bytes},
          {"kv_bytes_last", g.rounds.back().kv_bytes}};
}

}  // namespace vramtrack
