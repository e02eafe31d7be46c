#include "report/call_sites.h"

#include <algorithm>

#include "attribution/call_site.h"

namespace vramtrack {
namespace {

std::string largest_row(const std::map<std::string, uint64_t>& rows) {
  return std::max_element(rows.begin(), rows.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

void merge(CallSite& into, const CallSite& more) {
  // The stack that is shown is one of the larger part.
  if (more.amount.bytes > into.amount.bytes) into.stack = more.stack;
  into.amount.add(more.amount);
  into.stacks += more.stacks;
  for (const auto& [row, bytes] : more.rows) into.rows[row] += bytes;
  if (!into.rows.empty()) into.row = largest_row(into.rows);
}

void CallSites::add(const Block& block, const Verdict& verdict) {
  OfStack& stack = stacks_[block.stack];
  stack.amount.add(block.bytes(), block.variance());
  stack.rows[verdict.row()] += block.bytes();
}

std::vector<CallSite> CallSites::take() const {
  std::map<std::string, CallSite> by_line;
  std::map<std::string, uint64_t> largest;  // bytes of the stack that was kept for a line
  for (const auto& [id, stack] : stacks_) {
    std::string name = call_site(*definitions_, id);
    const auto [place, added] = by_line.try_emplace(name);
    CallSite& site = place->second;
    if (added) {
      site.name = name;
      if (const auto index = user_frame(*definitions_, id)) {
        site.frame = definitions_->frame(definitions_->stack(id)[*index]);
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
    site.row = largest_row(site.rows);
    sites.push_back(std::move(site));
  }
  std::stable_sort(sites.begin(), sites.end(), [](const CallSite& a, const CallSite& b) {
    return a.amount.bytes > b.amount.bytes;
  });
  return sites;
}

}  // namespace vramtrack
