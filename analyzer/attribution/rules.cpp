#include "attribution/rules.h"

#include <algorithm>
#include <cassert>

#include "attribution/fact_rules.h"
#include "attribution/torch_rules.h"

namespace vramtrack {
namespace {

// In order of precedence: what the program says of itself beats what we conclude.
constexpr Rule kRules[] = {
    {"label", by_label},
    {"phase that names a category", by_phase},
    {"memory of another library", by_library},
    {"workspace of a library", library_workspace},
    {"optimizer state", optimizer_state},
    {"gradient scaling", optimizer_temporary},
    {"keys and values", key_value_cache},
    {"parameters", parameters_from_stack},
    {"gradients", gradients},
    {"threads without Python", without_frames},
    {"older than the recording", before_recording},
    {"logits and loss", logits},
    {"attention", attention},
    {"keys and values of a forward pass", keys_and_values},
    {"activations", activations},
    {"inputs", inputs},
    {"kernels that use it", by_kernels},
    {"results outside modules", results_outside_modules},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

Scene::Scene(const Recording& of, const Timeline& over, const MemoryState& at)
    : own_traits_(std::make_unique<StackTraitsCache>(of.definitions())),
      state_(&at),
      recording(of),
      timeline(over),
      traits(*own_traits_),
      moment(at.sequence()) {
}

Scene::Scene(const Recording& of, const Timeline& over, uint64_t at, const StackTraitsCache& known,
             const Evidence& gathered)
    : evidence_(&gathered), recording(of), timeline(over), traits(known), moment(at) {
}

const Evidence& Scene::evidence() const {
  if (evidence_ != nullptr) return *evidence_;
  assert(state_ != nullptr);  // each constructor gives one of the two
  own_evidence_ = std::make_unique<Evidence>(Evidence::of(recording, *state_, traits));
  evidence_ = own_evidence_.get();
  return *own_evidence_;
}

const BlockTouches* Scene::touches(const Block& block) const {
  if (timeline.work == 0) return nullptr;
  if (!touches_) touches_.emplace(recording, moment);
  return touches_->of(block);
}

KernelRole Scene::kernel_role(const Block& block) const {
  if (timeline.accesses == 0) return KernelRole::none;
  if (!roles_) roles_.emplace(recording, moment);
  return roles_->of(block);
}

Verdict judge(const Block& block, const Scene& scene) {
  for (const Rule& rule : rules()) {
    if (std::optional<Verdict> verdict = rule.judge(block, scene)) return *std::move(verdict);
  }
  return {.category = Category::other, .reason = "nothing tells what it is", .confidence = 0};
}

std::optional<Category> category_named(std::string_view name) {
  const auto found = std::find(kCategoryNames.begin(), kCategoryNames.end(), name);
  if (found == kCategoryNames.end()) return std::nullopt;
  return static_cast<Category>(found - kCategoryNames.begin());
}

std::string Verdict::row() const {
  std::string row(name_of(category));
  if (!sub_row.empty()) row += "/" + sub_row;
  return row;
}

}  // namespace vramtrack
