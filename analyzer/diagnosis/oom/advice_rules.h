// The tables of advice. A row is a name and a function that looks at the evidence and answers with
// a piece of advice, or with nothing where it does not apply or is in force already.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_RULES_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_RULES_H

#include <optional>
#include <span>
#include <string_view>

#include "diagnosis/oom/advice.h"

namespace vramtrack {

struct AdviceRule {
  std::string_view id;
  std::optional<Advice> (*apply)(const AdviceContext& context);
};

std::span<const AdviceRule> allocator_rules();  // settings of the caching allocator
std::span<const AdviceRule> program_rules();    // what the program keeps, and who else is there
std::span<const AdviceRule> library_rules();    // switches of one library

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_OOM_ADVICE_RULES_H
