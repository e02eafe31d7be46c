// What a piece of memory is, in one of the categories of docs/reading-a-report.md, with the reason
// in words and how sure we are.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_VERDICT_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_VERDICT_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

enum class Category : uint8_t {
  parameters,
  gradients,
  optimizer_state,
  activations,
  attention,
  kv_cache,
  inputs,
  workspace,
  communication,
  rounding,
  other,
  cached,
  outside,
};
inline constexpr size_t kCategoryCount = 13;

inline constexpr std::array<std::string_view, kCategoryCount> kCategoryNames = {
    "parameters", "gradients", "optimizer_state", "activations",   "attention",
    "kv_cache",   "inputs",    "workspace",       "communication", "rounding",
    "other",      "cached",    "outside"};

constexpr std::string_view name_of(Category category) {
  return kCategoryNames[static_cast<size_t>(category)];
}
std::optional<Category> category_named(std::string_view name);

struct Verdict {
  Category category = Category::other;
  std::string sub_row;      // "logits": shown as activations/logits; empty: the category itself
  std::string reason;       // "labelled by the program", for people
  double confidence = 0.0;  // 0 nothing known .. 1 the program said so

  // "activations/logits" or "activations".
  [[nodiscard]] std::string row() const;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_VERDICT_H
