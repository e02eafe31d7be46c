#include "report/row_peaks.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attribution/call_site.h"
#include "attribution/rules.h"
#include "replay/progress.h"

namespace vramtrack {
namespace {

using Kind = std::pair<StackId, uint64_t>;  // the stack that made it, and its size
using RowId = size_t;

class Judgements {
  using Counts = std::map<RowId, uint64_t>;
  using Kinds = std::map<Kind, Counts>;

 public:
  Judgements(const Recording& recording, const Timeline& timeline, int16_t device)
      : recording_(recording), timeline_(timeline), device_(device) {}

  // `passing`: whether the moments are those of blocks that live at none of the others. What an
  // unjudged block is, is better told by its like among these than by one that lives long.
  void judge_at(const std::vector<Moment>& moments, bool passing) {
    Kinds& kinds = passing ? passing_ : lasting_;
    visit_states(recording_, moments, [&](size_t, const MemoryState& state) {
      const Scene scene(recording_, timeline_, state);
      state.for_each_live(device_, [&](const Block& block) {
        const auto [own, added] = blocks_.try_emplace(block.sequence, 0);
        if (!added) return;
        own->second = id_of(judge(block, scene).row());
        ++kinds[{block.stack, block.size}][own->second];
        ++stacks_[block.stack][own->second];
      });
    });
  }

  [[nodiscard]] bool knows(const Block& block) const {
    return blocks_.contains(block.sequence) || passing_.contains({block.stack, block.size});
  }

  // Its own verdict, else the most frequent one of its kind, of its stack, else "other".
  RowId row_of(const Block& block) {
    if (const auto own = blocks_.find(block.sequence); own != blocks_.end()) return own->second;
    for (const Kinds* kinds : {&passing_, &lasting_})
      if (const auto kind = kinds->find({block.stack, block.size}); kind != kinds->end())
        return most_frequent(kind->second);
    if (const auto stack = stacks_.find(block.stack); stack != stacks_.end())
      return most_frequent(stack->second);
    return id_of(std::string(name_of(Category::other)));
  }

  [[nodiscard]] const std::string& name(RowId id) const { return names_[id]; }

 private:
  static RowId most_frequent(const Counts& counts) {
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  RowId id_of(const std::string& name) {
    const auto [place, added] = ids_.try_emplace(name, names_.size());
    if (added) names_.push_back(name);
    return place->second;
  }

  const Recording& recording_;
  const Timeline& timeline_;
  int16_t device_;
  std::unordered_map<uint64_t, RowId> blocks_;  // by identity
  Kinds passing_;
  Kinds lasting_;
  std::unordered_map<StackId, Counts> stacks_;
  std::map<std::string, RowId> ids_;
  std::vector<std::string> names_;
};

// Notes one block of each kind that nobody judged yet.
class Unjudged : public BlockListener {
 public:
  Unjudged(const Judgements& judgements, int16_t device, uint64_t smallest)
      : judgements_(judgements), device_(device), smallest_(smallest) {}

  void block_begun(const Block& block) override {
    if (block.device != device_ || block.size < smallest_ || judgements_.knows(block)) return;
    found_[{block.stack, block.size}] = block.sequence;
  }
  void block_ended(const Block& block, const Event&, End end) override {
    if (end != End::became_segment) return;
    segments_.insert(block.sequence);
    const auto kind = found_.find({block.stack, block.size});
    if (kind != found_.end() && kind->second == block.sequence) found_.erase(kind);
  }

  // What turned out to be a caching allocator's, and counts by the blocks cut out of it.
  [[nodiscard]] const std::unordered_set<uint64_t>& segments() const { return segments_; }

  // Moments just after the largest of them were made.
  [[nodiscard]] std::vector<Moment> moments(size_t most) const {
    std::vector<std::pair<uint64_t, uint64_t>> largest;
    for (const auto& [kind, sequence] : found_) largest.emplace_back(kind.second, sequence);
    std::sort(largest.rbegin(), largest.rend());
    largest.resize(std::min(largest.size(), most));
    std::vector<Moment> moments;
    moments.reserve(largest.size());
    for (const auto& [size, sequence] : largest)
      moments.push_back({.sequence = sequence, .device = device_, .name = "kind"});
    return moments;
  }

 private:
  const Judgements& judgements_;
  int16_t device_;
  uint64_t smallest_;
  std::map<Kind, uint64_t> found_;
  std::unordered_set<uint64_t> segments_;
};

// Live bytes by a key, and the most that each ever had.
template <class Key>
class Highest {
 public:
  void add(const Key& key, double bytes) {
    auto& [live, most] = sums_[key];
    live += bytes;
    most = std::max(most, live);
  }
  [[nodiscard]] const std::map<Key, std::pair<double, double>>& sums() const { return sums_; }

 private:
  std::map<Key, std::pair<double, double>> sums_;
};

class PeakKeeper : public BlockListener {
 public:
  PeakKeeper(const Recording& recording, Judgements& judgements, int16_t device,
             std::unordered_set<uint64_t> segments)
      : recording_(recording),
        judgements_(judgements),
        device_(device),
        segments_(std::move(segments)) {}

  void block_begun(const Block& block) override {
    if (block.device != device_ || segments_.contains(block.sequence)) return;
    const Entry entry{judgements_.row_of(block), site_of(block.stack),
                      static_cast<double>(comparable_size(block))};
    live_[block.sequence] = entry;
    rows_.add(entry.row, entry.bytes);
    sites_.add(entry.site, entry.bytes);
  }

  void block_ended(const Block& block, const Event&, End) override {
    const auto found = live_.find(block.sequence);
    if (found == live_.end()) return;
    rows_.add(found->second.row, -found->second.bytes);
    sites_.add(found->second.site, -found->second.bytes);
    live_.erase(found);
  }

  [[nodiscard]] RowPeaks take() const {
    RowPeaks peaks;
    for (const auto& [row, sums] : rows_.sums()) peaks.rows[judgements_.name(row)] = sums.second;
    for (const auto& [site, sums] : sites_.sums()) peaks.sites[site_names_[site]] = sums.second;
    return peaks;
  }

 private:
  struct Entry {
    RowId row = 0;
    size_t site = 0;
    double bytes = 0;
  };

  size_t site_of(StackId stack) {
    const auto known = site_of_stack_.find(stack);
    if (known != site_of_stack_.end()) return known->second;
    const std::string name = call_site(recording_.definitions(), stack);
    const auto [place, added] = site_ids_.try_emplace(name, site_names_.size());
    if (added) site_names_.push_back(name);
    site_of_stack_[stack] = place->second;
    return place->second;
  }

  const Recording& recording_;
  Judgements& judgements_;
  int16_t device_;
  std::unordered_set<uint64_t> segments_;
  std::unordered_map<uint64_t, Entry> live_;
  Highest<RowId> rows_;
  Highest<size_t> sites_;
  std::unordered_map<StackId, size_t> site_of_stack_;
  std::map<std::string, size_t> site_ids_;
  std::vector<std::string> site_names_;
};

void replay(const Recording& recording, BlockListener& listener) {
  MemoryState state;
  state.set_listener(&listener);
  Progress progress("Replaying", recording.info().event_count);
  recording.for_each([&](const Event& event) {
    state.apply(event);
    progress.advance();
    return true;
  });
}

}  // namespace

RowPeaks row_peaks(const Recording& recording, const Timeline& timeline, int16_t device,
                   const std::vector<Moment>& moments) {
  constexpr int kRounds = 3;
  constexpr size_t kMomentsARound = 48;
  const DeviceTimeline* course = timeline.device(device);
  const uint64_t smallest = course == nullptr ? 0 : course->most_allocated / 1000;
  Judgements judgements(recording, timeline, device);
  judgements.judge_at(moments, false);
  std::unordered_set<uint64_t> segments;
  for (int round = 0; round < kRounds; ++round) {
    Unjudged unjudged(judgements, device, smallest);
    replay(recording, unjudged);
    segments = unjudged.segments();
    const std::vector<Moment> more = unjudged.moments(kMomentsARound);
    if (more.empty()) break;
    judgements.judge_at(more, true);
  }
  PeakKeeper keeper(recording, judgements, device, std::move(segments));
  replay(recording, keeper);
  return keeper.take();
}

}  // namespace vramtrack
