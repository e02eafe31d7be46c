// Rules that rest on what the program or the ledgers say outright: labels, phases named like a
// category, memory that another library took from the driver.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_FACT_RULES_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_FACT_RULES_H

#include "attribution/rules.h"

namespace vramtrack {

std::optional<Verdict> by_label(const Block& block, const Scene& scene);
std::optional<Verdict> by_phase(const Block& block, const Scene& scene);
std::optional<Verdict> by_library(const Block& block, const Scene& scene);

// "parameters:encoder.weight", "activations/logits" and "kv_cache" name a category, with what
// follows the slash as its sub-row. nullopt for any other text.
std::optional<Verdict> category_in(std::string_view text);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_FACT_RULES_H
