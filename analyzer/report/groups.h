// Live bytes by something other than the line: the module, phase, step or kernel they belong to.
#ifndef VRAMTRACK_ANALYZER_REPORT_GROUPS_H
#define VRAMTRACK_ANALYZER_REPORT_GROUPS_H

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/rules.h"
#include "report/call_sites.h"

namespace vramtrack {

enum class Grouping { category, site, module, phase, step, kernel };
std::optional<Grouping> grouping_named(std::string_view name);
std::string_view name_of(Grouping grouping);

struct Group {
  std::string name;
  Amount amount;
  std::map<std::string, uint64_t> rows;  // by category
  std::vector<CallSite> sites;           // largest first
};

class Groups {
 public:
  explicit Groups(Grouping grouping) : grouping_(grouping) {}

  void add(const Block& block, const Verdict& verdict, const Scene& scene);
  [[nodiscard]] std::vector<Group> take() const;  // largest first; steps in their order

 private:
  struct OfName {
    Group group;
    CallSites sites;
  };
  Grouping grouping_;
  std::map<std::string, OfName> groups_;
};

// What a block belongs to; "(none)" where nothing is known. Its kernel is the first that was given
// it, or, where the recording does not tell, the one that its thread launched next.
std::string group_of(const Scene& scene, const Block& block, Grouping grouping);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_GROUPS_H
