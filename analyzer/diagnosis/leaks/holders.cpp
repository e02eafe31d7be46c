#include "diagnosis/leaks/holders.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

namespace vramtrack {
namespace {

std::string without_numbers(const std::string& chain) {
  std::string kind;
  for (const char c : chain) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  }
  return kind;
}

}  // namespace

std::vector<Holder> holders_of(const Recording& recording) {
  std::vector<Holder> holders;
  recording.for_each([&](const Event& event) {
    if (event.kind != EventKind::holder) return true;
    Holder holder;
    holder.chain = recording.definitions().string(event.text);
    holder.stack = event.stack;
    holder.address = event.address;
    holder.bytes = event.size;
    holder.time_ns = event.time_ns;
    holders.push_back(std::move(holder));
    return true;
  });
  return holders;
}

std::vector<Holder> kinds_of_holders(const std::vector<Holder>& holders,
                                     const std::vector<StackId>& stacks) {
  const std::unordered_set<StackId> wanted(stacks.begin(), stacks.end());
  std::map<std::string, Holder> by_kind;
  for (const Holder& holder : holders) {
    if (wanted.count(holder.stack) == 0) continue;
    Holder& last = by_kind[without_numbers(holder.chain)];
    const uint64_t said = last.chain.empty() ? 1 : last.said + 1;
    last = holder;
    last.said = said;
  }
  std::vector<Holder> kinds;
  kinds.reserve(by_kind.size());
  for (auto& [kind, holder] : by_kind) kinds.push_back(std::move(holder));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Holder& a, const Holder& b) { return a.said > b.said; });
  return kinds;
}

}  // namespace vramtrack
