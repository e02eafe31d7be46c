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
uint64_t place_of(uint64_t address, int16_t device) {
  return address ^ (static_cast<uint64_t>(static_cast<uint16_t>(device)) << 48);
}

uint64_t comparable_size(const Event& event) {
  return event.requested != 0 ? event.requested : event.size;
}

}  // namespace

Evidence Evidence::of(const Recording& recording, const MemoryState& state,
                      const StackTraitsCache& traits) {
  Evidence evidence(traits);
  bool watching = false;
  recording.for_each([&](const Event& event) {
    if (!watching && event.sequence > state.sequence()) {
      evidence.watch(state);
      watching = true;
    }
    evidence.observe(event);
    return true;
  });
  if (!watching) evidence.watch(state);
  evidence.finish();
  return evidence;
}

void Evidence::watch(const MemoryState& state) {
  for (const int16_t device : state.devices()) {
    state.for_each_live(device, [&](const Block& block) {
      if (block.origin != Block::Origin::allocator) return;
      watched_.insert_or_assign(place_of(block.address, block.device), block.sequence);
      note_device(block.device);
    });
  }
}

void Evidence::observe(const Event& event) {
  switch (event.kind) {
    case EventKind::block_alloc:
      // Whatever was there is gone; its free was lost.
      if (!watched_.empty()) watched_.erase(place_of(event.address, event.device));
      if ((event.flags & kEventReconstructed) != 0) {
        reconstructed_.push_back({event.sequence, comparable_size(event)});
        watched_.emplace(place_of(event.address, event.device), event.sequence);
        note_device(event.device);
      } else if (event.stack != 0) {
        note_allocation(event);
      } else if (empty_stacks_go_back() && (event.flags & kEventForeignText) != 0) {
        note_activity(event.sequence, Activity::backward);
      }
      return;
    case EventKind::block_free:
      if (!watched_.empty()) note_end(event);
      return;
    case EventKind::label:
      if (!watched_.empty()) note_label(event);
      return;
    default:
      return;
  }
}

void Evidence::note_device(int16_t device) {
  if (std::find(devices_.begin(), devices_.end(), device) == devices_.end())
    devices_.push_back(device);
}

void Evidence::note_end(const Event& event) {
  const auto found = watched_.find(place_of(event.address, event.device));
  if (found == watched_.end()) return;
  ends_.try_emplace(found->second, BlockEnd{event.sequence, event.stack, event.thread});
  watched_.erase(found);
}

void Evidence::note_label(const Event& event) {
  for (const int16_t device : devices_) {
    const auto found = watched_.find(place_of(event.address, device));
    if (found != watched_.end()) labels_.try_emplace(found->second, event.text);
  }
}

void Evidence::note_allocation(const Event& event) {
  const uint64_t size = comparable_size(event);
  Noted& noted = noted_[(event.stack * 2654435761U ^ size >> 9) % noted_.size()];
  if (noted.stack != event.stack || noted.size != size) {
    const StackTraits& traits = traits_->of(event.stack);
    note_size(size, traits);
    forward_seen_ = forward_seen_ || is_forward(traits);
    native_seen_ = native_seen_ || traits.native;
    if (size >= kTellingSize && is_forward(traits)) attention_.note(event.stack, traits);
    noted = {size, event.stack, phase_of(traits.activity())};
  }
  note_activity(event.sequence, noted.activity);
}

void Evidence::note_size(uint64_t size, const StackTraits& traits) {
  const bool constructs = traits.has(Trait::module_creation) && !traits.has(Trait::module_forward);
  if (constructs && !traits.constructor.empty()) constructors_.insert(traits.constructor);
  // A library's workspace lies under the layer that needs it and has a size of its own.
  if (size < kTellingSize || traits.has(Trait::blas_workspace) || traits.has(Trait::dropout_states))
    return;
  const bool forwards = is_forward(traits);
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
void Evidence::finish() {
  attention_.finish();
  watched_.clear();
  for (const Old& old : reconstructed_) {
    const BlockEnd end = end_of(old.block);
    const bool by_optimizer = traits_->of(end.stack).activity() == Activity::optimizer;
    if (end.sequence == kNever) {
      ++kept_[old.size];
    } else if (by_optimizer) {
      replaced_[old.size].push_back(end.sequence);
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

bool Evidence::waits_to_replace(uint64_t bytes, uint64_t sequence, uint64_t moment) const {
  const auto found = replaced_.find(bytes);
  if (found == replaced_.end()) return false;
  bool later = false;
  for (const uint64_t end : found->second) {
    if (end > sequence && end <= moment) return false;
    later = later || end > moment;
  }
  return later;
}

}  // namespace vramtrack
