#include "attribution/attention_calls.h"

#include <algorithm>
#include <array>
#include <limits>

namespace vramtrack {
namespace {

// Deeper attention code than this many Python frames is not looked for.
constexpr size_t kMostFrames = 24;

// Python code between a linear layer's product and whoever called the layer.
bool stands_between(const Frame& frame) {
  constexpr std::array<std::string_view, 7> kFiles = {"torch/nn/",
                                                      "torch/overrides.py",
                                                      "torch/functional.py",
                                                      "torch/_",
                                                      "/peft/",
                                                      "transformers/pytorch_utils.py",
                                                      "/einops/"};
  if (frame.function.ends_with("__torch_function__")) return true;
  return std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) {
    return frame.file.find(file) != std::string::npos;
  });
}

bool contains_rotary(std::string_view function) {
  return function.find("rotary") != std::string_view::npos ||
         function.find("rope") != std::string_view::npos;
}

uint64_t mixed(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
}

}  // namespace

std::vector<AttentionCalls::Place> AttentionCalls::places_of(StackId stack) const {
  std::vector<const Frame*> frames;
  std::vector<FrameId> ids;
  for (const FrameId id : definitions_->stack(stack)) {
    if (!definitions_->frame(id).python) continue;
    frames.push_back(&definitions_->frame(id));
    ids.push_back(id);
  }
  std::vector<Place> places(frames.size());
  uint64_t outside = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    places[i] = {frames[i]->file + "\n" + frames[i]->function, outside, frames[i]->line};
    outside = mixed(outside, ids[i]);
  }
  places.resize(std::min(places.size(), kMostFrames));
  return places;
}

AttentionCalls::Surroundings AttentionCalls::surroundings_of(StackId stack) const {
  Surroundings around;
  size_t index = 0;
  const std::vector<Place> places = places_of(stack);
  for (const FrameId id : definitions_->stack(stack)) {
    const Frame& frame = definitions_->frame(id);
    if (!frame.python) continue;
    if (index >= places.size()) break;
    const Place& place = places[index++];
    if (stands_between(frame)) continue;
    (around.known ? around.outer : around.inner) = {place.outside, place.code};
    if (around.known) break;
    around.known = true;
  }
  return around;
}

bool AttentionCalls::is_near_softmax(StackId stack) const {
  const Surroundings around = surroundings_of(stack);
  if (!around.known || softmax_unknown_) return true;
  return softmax_inner_.contains(around.inner) || softmax_outer_.contains(around.inner) ||
         softmax_inner_.contains(around.outer);
}

void AttentionCalls::note(StackId stack, const StackTraits& traits) {
  const bool attends = traits.has(Trait::dot_product_attention) ||
                       traits.has(Trait::fused_attention) ||
                       (traits.has(Trait::softmax) && !traits.has(Trait::loss));
  const bool projects = traits.has(Trait::projection) && !traits.has(Trait::batched_product);
  const bool rotates = traits.has(Trait::rotary) && traits.op.starts_with("add");
  if (!attends && !projects && !rotates) return;
  if (!known_.insert(stack).second) return;
  if (traits.has(Trait::dot_product_attention) && traits.op.starts_with("clone")) {
    uint64_t python = 0;
    for (const FrameId id : definitions_->stack(stack))
      if (definitions_->frame(id).python) python = mixed(python, id);
    copies_[python].push_back(stack);
  }
  if (attends) {
    attending_.push_back(stack);
    const Surroundings around = surroundings_of(stack);
    softmax_unknown_ = softmax_unknown_ || !around.known;
    softmax_inner_.insert(around.inner);
    softmax_outer_.insert(around.outer);
    return;
  }
  size_t index = 0;  // of the place; counts Python frames
  for (const FrameId id : definitions_->stack(stack)) {
    const Frame& frame = definitions_->frame(id);
    if (!frame.python) continue;
    if (rotates ? contains_rotary(frame.function) : !stands_between(frame)) break;
    ++index;
  }
  const std::vector<Place> places = places_of(stack);
  if (index >= places.size()) return;
  if (rotates) {
    rotating_.emplace_back(stack, index);
  } else {
    const Place& place = places[index];
    projections_[{place.outside, place.code}].by_line[place.line].push_back(stack);
  }
}

void AttentionCalls::finish() {
  find_projections();
  find_rotations();
  find_copies();
  copies_.clear();
  attending_.clear();
  rotating_.clear();
  projections_.clear();
}

void AttentionCalls::find_projections() {
  // The innermost function around a softmax that also calls linear layers; from its first line on.
  std::map<Key, uint32_t> attention_at;
  for (const StackId stack : attending_) {
    for (const Place& place : places_of(stack)) {
      const Key key{place.outside, place.code};
      if (!projections_.contains(key)) continue;
      const auto [at, added] = attention_at.try_emplace(key, place.line);
      if (!added) at->second = std::min(at->second, place.line);
      break;
    }
  }
  for (const auto& [key, line] : attention_at) {
    std::vector<const std::vector<StackId>*> before;
    for (const auto& [at, stacks] : projections_[key].by_line)
      if (at < line) before.push_back(&stacks);
    if (before.empty() || before.size() > 3) continue;
    for (size_t i = 0; i < before.size(); ++i) {
      const AttentionRole role = before.size() == 1 ? AttentionRole::fused
                                 : i == 0           ? AttentionRole::query
                                                    : AttentionRole::keys_values;
      for (const StackId stack : *before[i]) roles_[stack] = role;
    }
  }
}

// Q and K are rotated on two lines of one function, or by two calls of a function that rotates one.
void AttentionCalls::find_rotations() {
  for (const size_t outwards : {size_t{0}, size_t{1}}) {
    std::map<Key, Calls> calls;
    for (const auto& [stack, index] : rotating_) {
      const std::vector<Place> places = places_of(stack);
      if (index + outwards >= places.size() || roles_.contains(stack)) continue;
      const Place& place = places[index + outwards];
      calls[{place.outside, place.code}].by_line[place.line].push_back(stack);
    }
    for (const auto& [key, of] : calls) {
      if (of.by_line.size() != 2) continue;
      for (const StackId stack : of.by_line.begin()->second) roles_[stack] = AttentionRole::query;
      for (const StackId stack : of.by_line.rbegin()->second)
        roles_[stack] = AttentionRole::rotated_keys;
    }
  }
}

// The plain operators behind scaled_dot_product_attention copy Q and K for one product and V for
// the other, from three places of one function that only native addresses tell apart.
void AttentionCalls::find_copies() {
  for (const auto& [python, stacks] : copies_) {
    if (stacks.size() != 3) continue;
    roles_[stacks[1]] = roles_[stacks[2]] = AttentionRole::copied_keys_values;
  }
}

AttentionRole AttentionCalls::role_of(StackId stack) const {
  const auto found = roles_.find(stack);
  return found == roles_.end() ? AttentionRole::none : found->second;
}

}  // namespace vramtrack
