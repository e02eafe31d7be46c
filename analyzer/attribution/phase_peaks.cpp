#include "attribution/phase_peaks.h"

#include <array>
#include <string_view>

#include "replay/state.h"

namespace vramtrack {
namespace {

enum class Part : uint8_t { rest, attention, loss, kCount };
constexpr std::array<std::string_view, static_cast<size_t>(Part::kCount)> kSuffixes = {
    "", ", attention", ", loss"};

bool is_attention_node(std::string_view node) {
  for (const std::string_view name : {"Softmax", "SafeSoftmax", "Bmm", "ScaledDot", "Flash"})
    if (node.starts_with(name)) return true;
  return false;
}

Part part_of(const StackTraits& traits, Activity activity) {
  if (activity != Activity::forward && activity != Activity::backward) return Part::rest;
  if (traits.has(Trait::loss) || traits.has(Trait::log_softmax)) return Part::loss;
  const bool attends = traits.has(Trait::softmax) || traits.has(Trait::batched_product) ||
                       traits.has(Trait::dot_product_attention) ||
                       traits.has(Trait::fused_attention) ||
                       is_attention_node(traits.backward_node);
  return attends ? Part::attention : Part::rest;
}

}  // namespace

std::vector<PhasePeak> find_phase_peaks(const Recording& recording, int16_t device,
                                        const StackTraitsCache& traits) {
  constexpr size_t kActivities = static_cast<size_t>(Activity::communication) + 1;
  constexpr size_t kParts = static_cast<size_t>(Part::kCount);
  std::vector<std::array<PhasePeak, kParts>> peaks(kActivities);
  Activity current = Activity::unknown;
  MemoryState state;
  recording.for_each([&](const Event& event) {
    state.apply(event);
    if (event.kind != EventKind::block_alloc || event.device != device ||
        (event.flags & (kEventReconstructed | kEventCarried)) != 0)
      return true;
    const StackTraits& stack = traits.of(event.stack);
    Activity activity = stack.activity();
    if (activity == Activity::recomputation) activity = Activity::backward;
    if (activity != Activity::unknown && activity != Activity::communication) current = activity;
    const Part part = part_of(stack, current);
    PhasePeak& peak = peaks[static_cast<size_t>(current)][static_cast<size_t>(part)];
    const uint64_t allocated = state.totals(device).allocated;
    if (allocated <= peak.allocated) return true;
    peak.activity = current;
    peak.allocated = allocated;
    peak.moment.sequence = event.sequence;
    peak.moment.time_ns = event.time_ns;
    peak.moment.step = state.step();
    return true;
  });
  std::vector<PhasePeak> found;
  for (auto& parts : peaks) {
    for (size_t part = 0; part < kParts; ++part) {
      PhasePeak& peak = parts[part];
      if (peak.allocated == 0) continue;
      peak.moment.device = device;
      peak.moment.name =
          std::string(name_of(peak.activity)) + std::string(kSuffixes[part]) + "-peak";
      found.push_back(peak);
    }
  }
  return found;
}

}  // namespace vramtrack
