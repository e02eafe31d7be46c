// The table of rules. Each rule looks at one block and either says what it is or passes; the first
// that speaks wins, so the order of the table is the order of precedence.
//
// To add a rule: write a function in the file of its evidence (label_rules.cpp, ledger_rules.cpp,
// ...), add one entry to the table in rules.cpp and one test in tests/attribution/.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_RULES_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_RULES_H

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "attribution/evidence.h"
#include "attribution/kernel_roles.h"
#include "attribution/stack_traits.h"
#include "attribution/verdict.h"
#include "replay/state.h"
#include "replay/timeline.h"
#include "replay/touches.h"

namespace vramtrack {

// All that a rule may look at besides the block. What is costly to know is computed once per moment
// or per stack, when a rule first asks, and kept here.
class Scene {
 public:
  // `at` is the state at the moment whose blocks are judged. All three outlive the scene. The
  // evidence costs a pass of its own.
  Scene(const Recording& of, const Timeline& over, const MemoryState& at);
  // With evidence that was gathered for the moment, the sequence number `at`, already.
  Scene(const Recording& of, const Timeline& over, uint64_t at, const StackTraitsCache& known,
        const Evidence& gathered);

  [[nodiscard]] const Definitions& definitions() const { return recording.definitions(); }
  [[nodiscard]] const Evidence& evidence() const;
  // Who touched a block in its life; nullptr where nobody was seen to.
  [[nodiscard]] const BlockTouches* touches(const Block& block) const;
  // What those kernels do with it.
  [[nodiscard]] KernelRole kernel_role(const Block& block) const;

 private:
  const std::unique_ptr<const StackTraitsCache> own_traits_;
  const MemoryState* const state_ = nullptr;
  mutable std::unique_ptr<const Evidence> own_evidence_;
  mutable const Evidence* evidence_ = nullptr;
  mutable std::optional<TouchIndex> touches_;
  mutable std::optional<KernelRoles> roles_;

 public:
  const Recording& recording;
  const Timeline& timeline;
  const StackTraitsCache& traits;
  const uint64_t moment;  // a sequence number
};

struct Rule {
  std::string_view name;
  std::optional<Verdict> (*judge)(const Block& block, const Scene& scene);
};

std::span<const Rule> rules();

// The verdict of the first rule that speaks, else `other` with confidence 0.
Verdict judge(const Block& block, const Scene& scene);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_RULES_H
