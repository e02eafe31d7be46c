#include "diagnosis/witness/witness_audit.h"

#include <algorithm>
#include <tuple>

#include "diagnosis/witness/alignment.h"
#include "diagnosis/witness/collect.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

// What two operations must share to be the same one. An array is a handle to us and an address to
// CUPTI, and its padding is the driver's secret: only the order tells them apart. A release is told
// by its address alone.
using Identity = std::tuple<bool, bool, uint64_t, uint64_t>;

Identity identity(const Operation& operation) {
  const bool array = operation.memory == Memory::array;
  return {operation.allocation, array, array ? 0 : operation.address,
          array || !operation.allocation ? 0 : operation.size};
}

struct Sides {
  std::vector<const Operation*> hooks;
  std::vector<const Operation*> cupti;
};

std::vector<uint64_t> times(const std::vector<const Operation*>& operations) {
  std::vector<uint64_t> result;
  result.reserve(operations.size());
  for (const Operation* operation : operations) result.push_back(operation->time_ns);
  return result;
}

void sort_by_time(std::vector<const Operation*>& operations) {
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation* a, const Operation* b) { return a->time_ns < b->time_ns; });
}

// Of the longer side those that found no partner.
std::vector<const Operation*> unpaired(const std::vector<const Operation*>& fewer,
                                       const std::vector<const Operation*>& more) {
  std::vector<bool> paired(more.size());
  for (const size_t partner : align(times(fewer), times(more))) paired[partner] = true;
  std::vector<const Operation*> left;
  for (size_t i = 0; i < more.size(); ++i)
    if (!paired[i]) left.push_back(more[i]);
  return left;
}

AuditRow& row_of(WitnessAudit& audit, const Operation& operation) {
  return audit.rows[{operation.api, operation.library}];
}

void compare(WitnessAudit& audit, Sides& sides) {
  sort_by_time(sides.hooks);
  sort_by_time(sides.cupti);
  const bool hooks_have_more = sides.hooks.size() > sides.cupti.size();
  const auto left =
      hooks_have_more ? unpaired(sides.cupti, sides.hooks) : unpaired(sides.hooks, sides.cupti);
  for (const Operation* operation : left) {
    ++(hooks_have_more ? row_of(audit, *operation).only_hooks
                       : row_of(audit, *operation).only_cupti);
    (hooks_have_more ? audit.only_hooks : audit.only_cupti).push_back(*operation);
  }
  // What both saw carries the name that the hook noted.
  size_t next = 0;
  for (const Operation* operation : sides.hooks) {
    if (hooks_have_more && next < left.size() && left[next] == operation) {
      ++next;
      continue;
    }
    ++row_of(audit, *operation).both;
    ++(operation->allocation ? audit.allocations : audit.releases);
  }
}

void sort_by_time(std::vector<Operation>& operations) {
  std::stable_sort(operations.begin(), operations.end(),
                   [](const Operation& a, const Operation& b) { return a.time_ns < b.time_ns; });
}

}  // namespace

WitnessAudit audit_witnesses(const Recording& recording) {
  Ledgers ledgers = collect_ledgers(recording);
  if (!ledgers.span.ran) {
    const std::string& why = ledgers.span.unavailable;
    throw InputError(why.empty()
                         ? "this recording holds nothing of CUPTI; record it with: vramtrack run "
                           "--cupti -- program"
                         : "this recording holds nothing of CUPTI: " + why);
  }
  WitnessAudit audit;
  audit.span = std::move(ledgers.span);
  audit.kernels = ledgers.kernels;
  audit.pool_operations = ledgers.pool_operations;
  audit.outside_span = ledgers.outside_span;
  audit.exceptions = std::move(ledgers.exceptions);
  audit.unseen_calls = std::move(ledgers.calls);

  std::map<Identity, Sides> by_identity;
  for (const Operation& operation : ledgers.hooks)
    by_identity[identity(operation)].hooks.push_back(&operation);
  for (const Operation& operation : ledgers.cupti)
    by_identity[identity(operation)].cupti.push_back(&operation);
  for (auto& [id, sides] : by_identity) compare(audit, sides);
  for (const UnseenCall& call : audit.unseen_calls)
    ++audit.rows[{call.api, call.library}].only_cupti;
  sort_by_time(audit.only_hooks);
  sort_by_time(audit.only_cupti);
  return audit;
}

}  // namespace vramtrack
