#include "diagnosis/oom/oom_holders.h"

#include <unordered_map>

namespace vramtrack {

OomHolders::OomHolders(const Recording& recording, const Event& oom, const MemoryState& state,
                       int16_t device) {
  std::unordered_map<uint64_t, StackId> live;
  state.for_each_live(device,
                      [&](const Block& block) { live.emplace(block.address, block.stack); });
  bool next_oom = false;
  recording.for_each([&](const Event& event) {
    if (event.kind == EventKind::out_of_memory && event.sequence > oom.sequence) next_oom = true;
    if (event.kind != EventKind::holder) return true;
    const auto block = live.find(event.address);
    if (block == live.end() || block->second != event.stack) return true;
    Holder holder{.chain = std::string(recording.definitions().string(event.text)),
                  .stack = event.stack,
                  .address = event.address,
                  .bytes = event.size,
                  .time_ns = event.time_ns};
    const bool at_oom =
        (event.flags & kEventAtOom) != 0 && event.sequence > oom.sequence && !next_oom;
    (at_oom ? at_oom_ : at_other_times_).push_back(std::move(holder));
    return true;
  });
}

std::vector<SiteHolder> OomHolders::of(const std::vector<StackId>& stacks) const {
  std::vector<SiteHolder> result;
  for (const bool at_oom : {true, false}) {
    for (Holder& holder : kinds_of_holders(at_oom ? at_oom_ : at_other_times_, stacks))
      result.push_back({std::move(holder.chain), holder.said, holder.time_ns, at_oom});
    if (!result.empty()) break;
  }
  return result;
}

}  // namespace vramtrack
