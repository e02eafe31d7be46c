#include "report/groups.h"

#include <algorithm>
#include <array>
#include <utility>

#include "attribution/call_site.h"
#include "attribution/module_path.h"

namespace vramtrack {
namespace {

constexpr std::array<std::pair<std::string_view, Grouping>, 6> kGroupings = {{
    {"category", Grouping::category},
    {"site", Grouping::site},
    {"module", Grouping::module},
    {"phase", Grouping::phase},
    {"step", Grouping::step},
    {"kernel", Grouping::kernel},
}};

constexpr std::string_view kNone = "(none)";

std::string or_none(std::string_view text) {
  return std::string(text.empty() ? kNone : text);
}

std::string kernel_of(const Scene& scene, const Block& block) {
  const BlockTouches* touches = scene.touches(block);
  return toucher_title(scene.definitions(),
                       touches != nullptr ? touches->first.kernel : block.kernel);
}

}  // namespace

std::optional<Grouping> grouping_named(std::string_view name) {
  for (const auto& [known, grouping] : kGroupings) {
    if (known == name) return grouping;
  }
  return std::nullopt;
}

std::string_view name_of(Grouping grouping) {
  for (const auto& [name, known] : kGroupings) {
    if (known == grouping) return name;
  }
  return {};
}

std::string group_of(const Scene& scene, const Block& block, Grouping grouping) {
  const Definitions& definitions = scene.definitions();
  switch (grouping) {
    case Grouping::site:
      return call_site(definitions, block.stack);
    case Grouping::module:
      return or_none(module_path(definitions, block));
    case Grouping::phase:
      return or_none(definitions.string(block.phase));
    case Grouping::step:
      return block.step == kNoStep ? "(before the first step)" : std::to_string(block.step);
    case Grouping::kernel:
      return or_none(kernel_of(scene, block));
    case Grouping::category:
      break;
  }
  return std::string(kNone);
}

void Groups::add(const Block& block, const Verdict& verdict, const Scene& scene) {
  const std::string name =
      grouping_ == Grouping::category ? verdict.row() : group_of(scene, block, grouping_);
  OfName& of =
      groups_.try_emplace(name, OfName{Group{.name = name}, CallSites(scene.definitions())})
          .first->second;
  of.group.amount.add(block.bytes(), block.variance());
  of.group.rows[verdict.row()] += block.bytes();
  of.sites.add(block, verdict);
}

std::vector<Group> Groups::take() const {
  std::vector<Group> groups;
  for (const auto& [name, of] : groups_) {
    groups.push_back(of.group);
    groups.back().sites = of.sites.take();
  }
  const auto step_number = [](const Group& group) {
    return group.name.starts_with('(') ? uint64_t{0} : std::stoull(group.name) + 1;
  };
  if (grouping_ == Grouping::step) {
    std::sort(groups.begin(), groups.end(),
              [&](const Group& a, const Group& b) { return step_number(a) < step_number(b); });
  } else {
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
      return a.amount.bytes > b.amount.bytes;
    });
  }
  return groups;
}

}  // namespace vramtrack
