#include "diagnosis/fragmentation/ideal_packing.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "import/allocator_settings.h"
#include "replay/packing.h"

namespace vramtrack {
namespace {

constexpr uint64_t kEffort = 20'000;
// This many of the largest blocks are packed with foresight; the others above them, as they come.
constexpr size_t kMostPackedWell = 5'000;

class Lifetimes {
 public:
  // Snapshots tell the completion of every free, our own traces only of those that had to wait.
  explicit Lifetimes(bool all_completions) : all_completions_(all_completions) {}

  void apply(const Event& event) {
    ++now_;
    if (event.kind == EventKind::block_alloc) {
      end(event.address);
      open_[event.address] = items_.size();
      items_.push_back({now_, kOpen, needed(event)});
    } else if (event.kind == EventKind::block_free) {
      if (!all_completions_ && (event.flags & kEventPendingFree) == 0) end(event.address);
    } else if (event.kind == EventKind::block_free_completed) {
      end(event.address);
    }
  }
  std::vector<PackingItem> take() {
    for (PackingItem& item : items_)
      if (item.end == kOpen) item.end = now_ + 1;
    return std::move(items_);
  }

 private:
  static constexpr uint64_t kOpen = ~uint64_t{0};

  // A block can be larger than its request because the rest was not worth cutting off; that is the
  // allocator's doing, not the program's need.
  static uint64_t needed(const Event& event) {
    if (event.requested == 0) return event.size;
    return std::min(event.size, AllocatorSettings().round_size(event.requested));
  }
  void end(uint64_t address) {
    const auto open = open_.find(address);
    if (open == open_.end()) return;
    items_[open->second].end = now_;
    open_.erase(open);
  }

  uint64_t now_ = 0;
  bool all_completions_;
  std::vector<PackingItem> items_;
  std::unordered_map<uint64_t, size_t> open_;
};

uint64_t best_height(std::vector<PackingItem> items) {
  if (items.size() <= kMostPackedWell) return pack(items, kEffort).height;
  std::stable_sort(items.begin(), items.end(),
                   [](const PackingItem& a, const PackingItem& b) { return a.size > b.size; });
  const std::span<const PackingItem> all = items;
  const uint64_t split = pack(all.first(kMostPackedWell), kEffort).height +
                         pack(all.subspan(kMostPackedWell), 0).height;
  return std::min(split, pack(all, 0).height);
}

}  // namespace

IdealPacking ideal_packing(const Recording& recording, int16_t device, uint64_t reserved_peak) {
  Lifetimes lifetimes(recording.info().source == RecordingInfo::Source::snapshot);
  recording.for_each([&](const Event& event) {
    if (event.device == device) lifetimes.apply(event);
    return true;
  });
  std::vector<PackingItem> items = lifetimes.take();
  IdealPacking result;
  result.items = items.size();
  result.reserved_peak = reserved_peak;
  result.lower_bound = max_load(items);
  result.best_found = best_height(std::move(items));
  return result;
}

}  // namespace vramtrack
