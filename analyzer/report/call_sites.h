// Live bytes by the user's line that allocated them.
#ifndef VRAMTRACK_ANALYZER_REPORT_CALL_SITES_H
#define VRAMTRACK_ANALYZER_REPORT_CALL_SITES_H

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnosis/oom/oom_holders.h"
#include "report/category_table.h"

namespace vramtrack {

struct CallSite {
  std::string name;  // "train.py:42 forward"
  Frame frame;       // the user's; of an unknown function where no frame is the user's
  Amount amount;
  uint64_t stacks = 0;  // different ways to get there
  std::string row;      // the category that most of its bytes belong to
  std::map<std::string, uint64_t> rows;
  StackId stack = 0;                // the one that holds most
  std::vector<SiteHolder> holders;  // at an OOM: who keeps it, where the helper said so
};

// Adds what another site of the same name holds.
void merge(CallSite& into, const CallSite& more);

class CallSites {
 public:
  explicit CallSites(const Definitions& definitions) : definitions_(&definitions) {}

  void add(const Block& block, const Verdict& verdict);
  // Largest first. Stacks that end in the same line of the user are one site.
  [[nodiscard]] std::vector<CallSite> take() const;

 private:
  struct OfStack {
    Amount amount;
    std::map<std::string, uint64_t> rows;
  };
  const Definitions* definitions_;
  std::unordered_map<StackId, OfStack> stacks_;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_CALL_SITES_H
