// The rules that read PyTorch's stacks; their order is in rules.cpp. Each looks at one block and
// either says what it is or passes.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_TORCH_RULES_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_TORCH_RULES_H

#include <optional>

#include "attribution/evidence.h"
#include "attribution/rules.h"
#include "attribution/stack_traits.h"

namespace vramtrack {

// training_rules.cpp
std::optional<Verdict> optimizer_state(const Block& block, const Scene& scene);
std::optional<Verdict> optimizer_temporary(const Block& block, const Scene& scene);
std::optional<Verdict> parameters_from_stack(const Block& block, const Scene& scene);
std::optional<Verdict> gradients(const Block& block, const Scene& scene);
std::optional<Verdict> without_frames(const Block& block, const Scene& scene);
std::optional<Verdict> before_recording(const Block& block, const Scene& scene);

// kernel_rules.cpp
std::optional<Verdict> by_kernels(const Block& block, const Scene& scene);

// kv_rules.cpp
std::optional<Verdict> key_value_cache(const Block& block, const Scene& scene);
std::optional<Verdict> keys_and_values(const Block& block, const Scene& scene);

// model_rules.cpp
std::optional<Verdict> library_workspace(const Block& block, const Scene& scene);
std::optional<Verdict> logits(const Block& block, const Scene& scene);
std::optional<Verdict> attention(const Block& block, const Scene& scene);
std::optional<Verdict> activations(const Block& block, const Scene& scene);
std::optional<Verdict> inputs(const Block& block, const Scene& scene);
std::optional<Verdict> results_outside_modules(const Block& block, const Scene& scene);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_TORCH_RULES_H
