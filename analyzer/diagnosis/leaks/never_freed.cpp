#include "diagnosis/leaks/never_freed.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "attribution/call_site.h"

namespace vramtrack {
namespace {

std::string known_good(const Recording& recording, const Block& block) {
  for (const FrameId id : recording.definitions().stack(block.stack)) {
    const std::string& name = recording.definitions().frame(id).function;
    if (name.find("Workspace") != std::string::npos ||
        name.find("cublasCreate") != std::string::npos)
      return "workspace of a library";
    if (name.find("cudnn") != std::string::npos) return "cuDNN";
    if (name.find("nccl") != std::string::npos) return "NCCL";
  }
  // PyTorch's default cuBLAS workspace: 4 MiB and 128 KiB, rounded; the first matmul makes it.
  if (block.size == 8'519'680) return "cuBLAS workspace";
  return {};
}

// The last allocation: after it a program only takes down what it built, and at the very end, with
// its contexts gone, nothing is live at all.
Moment last_allocation(const Recording& recording, const Timeline& timeline) {
  Moment moment = timeline.end;
  recording.for_each([&moment](const Event& event) {
    if (event.kind == EventKind::block_alloc || event.kind == EventKind::physical_alloc)
      moment.sequence = event.sequence;
    return true;
  });
  return moment;
}

using BySite = std::map<std::tuple<std::string, int16_t, std::string>, NeverFreed>;

// What nobody's line holds, and is given back with the process.
void add_known(BySite& by_site, int16_t device, const std::string& site, const std::string& good,
               uint64_t bytes) {
  if (bytes == 0 || device < 0) return;
  by_site[{site, device, good}] = {
      .site = site, .device = device, .bytes = bytes, .known_good = good};
}

}  // namespace

std::vector<NeverFreed> never_freed(const Recording& recording, const Timeline& timeline) {
  BySite by_site;
  const MemoryState state = state_at(recording, last_allocation(recording, timeline));
  for (const auto& [ordinal, unused] : timeline.devices) {
    state.for_each_live(ordinal, [&, ordinal = ordinal](const Block& block) {
      const std::string site = call_site(recording.definitions(), block.stack);
      const std::string good = known_good(recording, block);
      NeverFreed& entry = by_site[{site, ordinal, good}];
      entry.site = site;
      entry.stack = block.stack;
      entry.device = ordinal;
      entry.known_good = good;
      entry.bytes += block.bytes();
      ++entry.blocks;
    });
    add_known(by_site, ordinal, "(caching allocator)", "cache of the allocator",
              state.totals(ordinal).cached());
    const Outside outside = state.outside(ordinal);
    add_known(by_site, ordinal, "(driver)", "CUDA context", outside.context);
    add_known(by_site, ordinal, "(libraries)", "CUDA libraries", outside.last.libraries);
  }
  std::vector<NeverFreed> entries;
  entries.reserve(by_site.size());
  for (auto& [key, entry] : by_site) entries.push_back(std::move(entry));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const NeverFreed& a, const NeverFreed& b) { return a.bytes > b.bytes; });
  return entries;
}

}  // namespace vramtrack
