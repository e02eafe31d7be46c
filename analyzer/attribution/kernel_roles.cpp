#include "attribution/kernel_roles.h"

#include <vramtrack/tensor_lists.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

namespace vramtrack {
namespace {

// What an optimizer's kernel does to its lists, in their order. PyTorch's Adam is, one operator
// after the other: lerp(first, gradient), addcmul(second, gradient, gradient),
// addcdiv(parameter, first, root of second); fused, one kernel does it all.
struct Pattern {
  std::string_view kernel;  // part of the mangled name
  std::string_view functor;
  std::array<KernelRole, 4> lists;
};

constexpr KernelRole kP = KernelRole::adam_parameter;
constexpr KernelRole kG = KernelRole::adam_gradient;
constexpr KernelRole kM = KernelRole::adam_first_moment;
constexpr KernelRole kV = KernelRole::adam_second_moment;
constexpr KernelRole kNone = KernelRole::none;

constexpr Pattern kPatterns[] = {
    {"FusedAdamMathFunctor", "", {kP, kG, kM, kV}},
    {"multi_tensor_apply_kernel", "LerpFunctor", {kM, kG, kNone, kNone}},
    {"PointwiseOp", "multiplies", {kV, kG, kNone, kNone}},
    {"PointwiseOp", "divides", {kP, kM, kNone, kNone}},
    {"lerp", "elementwise", {kM, kG, kNone, kNone}},
    {"addcmul", "elementwise", {kV, kG, kNone, kNone}},
    {"addcdiv", "elementwise", {kP, kM, kNone, kNone}},
    {"softmax_warp_forward", "ELb0ELb", {KernelRole::softmax, kNone, kNone, kNone}},  // not the log
};

// Fused attention passes one struct, whose order is nobody's promise. What nothing touched before
// are its outputs: the result, and 4 bytes for each row of it, which has 32 elements or more.
constexpr std::array<std::string_view, 2> kFusedAttention = {"flash_fwd", "fmha_cutlassF"};
constexpr uint64_t kLeastRatio = 16;  // 32 elements of 2 bytes against 4

constexpr std::array<std::string_view, 7> kNames = {
    "",        "adam/parameter", "adam/gradient", "adam/first moment", "adam/second moment",
    "softmax", "log-sum-exp"};

bool is_fused_attention(std::string_view kernel) {
  return std::any_of(kFusedAttention.begin(), kFusedAttention.end(), [&](std::string_view name) {
    return kernel.find(name) != std::string_view::npos;
  });
}

const Pattern* pattern_of(std::string_view kernel) {
  for (const Pattern& pattern : kPatterns) {
    if (kernel.find(pattern.kernel) != std::string_view::npos &&
        kernel.find(pattern.functor) != std::string_view::npos)
      return &pattern;
  }
  return nullptr;
}

// In which list each address stands. Kernels of single tensors have one address in each.
std::vector<size_t> lists_of(const KernelAccess& access, std::string_view kernel) {
  const TensorLists tensors = tensor_lists_of(kernel);
  std::vector<size_t> lists;
  if (tensors.lists == 0) {
    for (size_t i = 0; i < access.addresses.size(); ++i) lists.push_back(i);
    return lists;
  }
  // Lists begin at multiples of the slots; small parameters have no word as far back as the second
  // list of large ones begins.
  const uint32_t large = tensors.slots * TensorLists::kLarge;
  const bool is_large =
      tensors.lists > 1 && std::any_of(access.words.begin(), access.words.end(),
                                       [large](uint16_t word) { return word >= large; });
  const uint32_t slots = is_large ? large : tensors.slots;
  for (const uint16_t word : access.words) lists.push_back(word / slots);
  return lists;
}

class Follower : public BlockListener {
 public:
  Follower(const Recording& recording, uint64_t moment,
           std::unordered_map<uint64_t, KernelRole>& kept)
      : definitions_(recording.definitions()), moment_(moment), kept_(kept) {
    state_.set_listener(this);
  }

  void apply(const Event& event) {
    state_.apply(event);
    if (event.kind != EventKind::kernel_access || event.extra == 0) return;
    const KernelAccess* access = definitions_.access(event.extra);
    if (access == nullptr) return;
    const std::string_view kernel = definitions_.string(access->kernel);
    const auto [known, added] = patterns_.try_emplace(access->kernel);
    if (added) known->second = {pattern_of(kernel), is_fused_attention(kernel)};
    if (known->second.fused_attention) note_outputs(*access);
    if (known->second.pattern != nullptr) note_lists(*access, kernel, *known->second.pattern);
    for (const uint64_t address : access->addresses)
      if (const Block* block = state_.find(address)) touched_.insert(block->sequence);
  }

  void keep_live() {
    for (const auto& [block, role] : roles_)
      if (block <= moment_) kept_.emplace(block, role);
  }

  void block_begun(const Block& /*block*/) override {}
  void block_ended(const Block& block, const Event& event, End /*end*/) override {
    touched_.erase(block.sequence);
    const auto found = roles_.find(block.sequence);
    if (found == roles_.end()) return;
    if (block.sequence <= moment_ && event.sequence > moment_)
      kept_.emplace(found->first, found->second);
    roles_.erase(found);
  }

 private:
  struct Known {
    const Pattern* pattern = nullptr;
    bool fused_attention = false;
  };

  void note_lists(const KernelAccess& access, std::string_view kernel, const Pattern& pattern) {
    const std::vector<size_t> lists = lists_of(access, kernel);
    for (size_t i = 0; i < access.addresses.size(); ++i)
      if (lists[i] < pattern.lists.size()) note(access.addresses[i], pattern.lists[lists[i]]);
  }

  void note_outputs(const KernelAccess& access) {
    std::vector<const Block*> fresh;
    for (const uint64_t address : access.addresses) {
      const Block* block = state_.find(address);
      if (block != nullptr && !touched_.contains(block->sequence)) fresh.push_back(block);
    }
    std::sort(fresh.begin(), fresh.end(),
              [](const Block* a, const Block* b) { return a->size > b->size; });
    for (size_t i = 1; i < fresh.size(); ++i) {
      if (fresh[i]->size > fresh.front()->size / kLeastRatio) continue;
      roles_[fresh[i]->sequence] = KernelRole::log_sum_exp;
      return;  // what is smaller is the state of the random numbers
    }
  }

  void note(uint64_t address, KernelRole role) {
    if (role == KernelRole::none) return;
    const Block* block = state_.find(address);
    if (block != nullptr) roles_[block->sequence] = role;
  }

  const Definitions& definitions_;
  const uint64_t moment_;
  std::unordered_map<uint64_t, KernelRole>& kept_;
  MemoryState state_;
  std::unordered_map<uint64_t, KernelRole> roles_;
  std::unordered_map<StringId, Known> patterns_;
  std::unordered_set<uint64_t> touched_;  // live blocks that some kernel was given
};

}  // namespace

std::string_view name_of(KernelRole role) {
  return kNames[static_cast<size_t>(role)];
}

KernelRoles::KernelRoles(const Recording& recording, uint64_t moment) {
  Follower follower(recording, moment, roles_);
  recording.for_each([&](const Event& event) {
    follower.apply(event);
    return true;
  });
  follower.keep_live();
}

KernelRole KernelRoles::of(const Block& block) const {
  const auto found = roles_.find(block.sequence);
  return found == roles_.end() ? KernelRole::none : found->second;
}

}  // namespace vramtrack
