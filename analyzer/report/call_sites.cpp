#include "report/call_sites.h"

#include <algorithm>

#include "attribution/call_site.h"

namespace vramtrack {

void CallSites::add(const Block& block, const Verdict& verdict) {
  OfStack& stack = stacks_[block.stack];
  stack.amount.add(block.bytes(), block.variance());
  stack.rows[verdict.row()] += block.bytes();
}

std::vector<CallSite> CallSites::take() const {
  std::map<std::string, CallSite> by_line;
  std::map<std::string, uint64_t> largest;  // bytes of the stack that was kept for a line
  for (const auto& [id, stack] : stacks_) {
    std::string name = call_site(definitions_, id);
    const auto [place, added] = by_line.try_emplace(name);
    CallSite& site = place->second;
    if (added) {
      site.name = name;
      if (const auto index = user_frame(definitions_, id)) {
        site.frame = definitions_.frame(definitions_.stack(id)[*index]);
      }
    }
    site.amount.add(stack.amount);
    ++site.stacks;
    for (const auto& [row, bytes] : stack.rows) site.rows[row] += bytes;
    uint64_t& most = largest[name];
    if (added || stack.amount.bytes > most || (stack.amount.bytes == most && id < site.stack)) {
      most = stack.amount.bytes;
      site.stack = id;
    }
  }
  std::vector<CallSite> sites;
  for (auto& [name, site] : by_line) {
    site.row =
        std::max_element(site.rows.begin(), site.rows.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    sites.push_back(std::move(site));
  }
  std::stable_sort(sites.begin(), sites.end(), [](const CallSite& a, const CallSite& b) {
    return a.amount.bytes > b.amount.bytes;
  });
  return sites;
}

}  // namespace vramtrack
