#include "attribution/evidence.h"

#include <algorithm>

namespace vramtrack {
namespace {

// Small blocks have the size of everything; nothing is concluded from theirs.
constexpr uint64_t kTellingSize = 4096;

Activity phase_of(Activity activity) {
  return activity == Activity::recomputation ? Activity::backward : activity;
}

// Devices share no addresses in practice, but snapshots of several may.
uint64_t place_of(const Event& event) {
  return event.address ^ (static_cast<uint64_t>(static_cast<uint16_t>(event.device)) << 48);
}

}  // namespace

Evidence::Evidence(const Recording& recording, uint64_t moment, const StackTraitsCache& traits)
    : moment_(moment) {
  recording.for_each([&](const Event& event) {
    if (event.kind == EventKind::block_alloc) {
      const bool reconstructed = (event.flags & kEventReconstructed) != 0;
      const uint64_t size = event.requested != 0 ? event.requested : event.size;
      const Live live{event.sequence, size, reconstructed};
      live_.insert_or_assign(place_of(event), live);
      at_.insert_or_assign(event.address, event.sequence);
      if (reconstructed) reconstructed_.push_back(live);
      if (event.stack != 0 && !reconstructed) note_allocation(event, traits.of(event.stack));
    } else if (event.kind == EventKind::block_free) {
      note_end(event, moment);
    } else if (event.kind == EventKind::label) {
      note_label(event, moment);
    }
    return true;
  });
  live_.clear();
  at_.clear();
  count_reconstructed(traits);
}

void Evidence::note_end(const Event& event, uint64_t moment) {
  const auto found = live_.find(place_of(event));
  if (found == live_.end()) return;
  const Live& live = found->second;
  const bool asked = live.reconstructed || (live.block <= moment && event.sequence > moment);
  if (asked) ends_.try_emplace(live.block, BlockEnd{event.sequence, event.stack, event.thread});
  if (const auto at = at_.find(event.address); at != at_.end() && at->second == live.block)
    at_.erase(at);
  live_.erase(found);
}

void Evidence::note_label(const Event& event, uint64_t moment) {
  const auto found = at_.find(event.address);
  if (found != at_.end() && found->second <= moment && event.sequence > moment)
    labels_.try_emplace(found->second, event.text);
}

void Evidence::note_allocation(const Event& event, const StackTraits& traits) {
  note_activity(event.sequence, phase_of(traits.activity()));
  const uint64_t size = event.requested != 0 ? event.requested : event.size;
  const bool constructs = traits.has(Trait::module_creation) && !traits.has(Trait::module_forward);
  if (constructs && !traits.constructor.empty()) constructors_.insert(traits.constructor);
  // A library's workspace lies under the layer that needs it and has a size of its own.
  if (size < kTellingSize || traits.has(Trait::blas_workspace)) return;
  const bool forwards =
      traits.activity() == Activity::forward || traits.activity() == Activity::recomputation;
  if (forwards && !traits.has(Trait::autocast)) activation_.insert(size);
  // The operator itself, or a function of that name; not what a softmax that minds rows without any
  // score does beside it.
  const bool softmax_itself = traits.op.empty() || traits.op.find("softmax") != std::string::npos ||
                              traits.function.find("softmax") != std::string::npos;
  if (traits.has(Trait::softmax) && softmax_itself && !traits.has(Trait::loss) && forwards) {
    softmax_.insert(size);
    largest_softmax_ = std::max(largest_softmax_, size);
  }
  if (traits.has(Trait::log_softmax)) {
    logits_.insert(size);
    largest_logits_ = std::max(largest_logits_, size);
  }
  const bool product =
      traits.has(Trait::projection) && !traits.has(Trait::batched_product) && forwards;
  if (product) product_.insert(size);
  if (traits.has(Trait::projection) && traits.has(Trait::attention_code) && forwards)
    projection_.insert(size);
  if (traits.has(Trait::module_move) || traits.has(Trait::module_creation)) parameter_.insert(size);
}

void Evidence::note_activity(uint64_t sequence, Activity activity) {
  if (activity == Activity::backward || activity == Activity::optimizer) trains_ = true;
  if (activity == Activity::unknown || activity == Activity::communication) return;
  if (changes_.empty() || changes_.back().activity != activity)
    changes_.push_back({sequence, activity});
}

// What lived before the recording has no stack. What is never freed and what an optimizer's step
// frees (to put a new value in its place) tell apart by that.
void Evidence::count_reconstructed(const StackTraitsCache& traits) {
  for (const Live& live : reconstructed_) {
    const BlockEnd end = end_of(live.block);
    const bool by_optimizer = traits.of(end.stack).activity() == Activity::optimizer;
    if (end.sequence == kNever) {
      ++kept_[live.size];
    } else if (by_optimizer) {
      replaced_[live.size].push_back(end.sequence);
    }
  }
  for (const auto& [size, count] : kept_)
    if (size >= kTellingSize) parameter_.insert(size);
  reconstructed_.clear();
}

BlockEnd Evidence::end_of(uint64_t block) const {
  const auto found = ends_.find(block);
  return found == ends_.end() ? BlockEnd{} : found->second;
}

uint64_t Evidence::end_of_activity(uint64_t sequence) const {
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), sequence,
      [](uint64_t value, const ActivityChange& change) { return value < change.sequence; });
  return after == changes_.end() ? kNever : after->sequence;
}

Activity Evidence::activity_at(uint64_t sequence) const {
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), sequence,
      [](uint64_t value, const ActivityChange& change) { return value < change.sequence; });
  return after == changes_.begin() ? Activity::unknown : std::prev(after)->activity;
}

StringId Evidence::label_of(uint64_t block) const {
  const auto found = labels_.find(block);
  return found == labels_.end() ? 0 : found->second;
}

uint64_t Evidence::kept_count(uint64_t bytes) const {
  const auto found = kept_.find(bytes);
  return found == kept_.end() ? 0 : found->second;
}

uint64_t Evidence::replaced_count(uint64_t bytes) const {
  const auto found = replaced_.find(bytes);
  return found == replaced_.end() ? 0 : found->second.size();
}

bool Evidence::waits_to_replace(uint64_t bytes, uint64_t sequence) const {
  const auto found = replaced_.find(bytes);
  if (found == replaced_.end()) return false;
  bool later = false;
  for (const uint64_t end : found->second) {
    if (end > sequence && end <= moment_) return false;
    later = later || end > moment_;
  }
  return later;
}

}  // namespace vramtrack
