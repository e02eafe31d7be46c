#include "diagnosis/oom/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnosis/oom/advice_rules.h"

namespace vramtrack {

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::none:
      return "not quantified";
    case Basis::computed:
      return "computed";
    case Basis::measured:
      return "measured";
    case Basis::replayed:
      return "replayed";
  }
  return "not quantified";
}

std::optional<std::string> setting_in_force(const AdviceContext& context,
                                            std::string_view setting) {
  const auto found = context.settings.find(std::string(setting));
  if (found == context.settings.end()) return std::nullopt;
  std::string value = found->second;
  std::transform(value.begin(), value.end(), value.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (value.empty() || value == "false" || value == "0") return std::nullopt;
  return value;
}

namespace {

// Measured and computed savings count against what was missing; an upper bound only refutes.
void decide_enough(const AdviceContext& context, Advice& piece) {
  const auto& missing = context.audit.shortfall;
  if (piece.enough || !piece.saving || !missing) return;
  if (*piece.saving < missing->low()) piece.enough = false;
  if (!piece.at_most && *piece.saving >= missing->high()) piece.enough = true;
}

}  // namespace

std::vector<Advice> advise(const AdviceContext& context) {
  std::vector<Advice> advice;
  for (const auto table : {allocator_rules(), program_rules(), library_rules()}) {
    for (const AdviceRule& rule : table) {
      if (auto piece = rule.apply(context)) {
        piece->id = rule.id;
        decide_enough(context, *piece);
        advice.push_back(std::move(*piece));
      }
    }
  }
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
    return a.saving.value_or(-1) > b.saving.value_or(-1);
  });
  return advice;
}

}  // namespace vramtrack
