#include "report/hints.h"

#include <fmt/format.h>

#include "diagnosis/oom/recording_diagnosis.h"
#include "wording/units.h"

namespace vramtrack {
namespace {

// Less than this share of what is in use is not worth a look.
constexpr uint64_t kPartThatMatters = 20;

void hint_at_cause(const Report& report, const DeviceReport& device, std::vector<Hint>& hints) {
  if (!device.oom || !device.oom->found) return;
  const OomAudit audit = judge_scene(*device.oom, numbers_of(*device.oom));
  hints.push_back({fmt::format("why it ran out: {}", audit.reason),
                   fmt::format("vramtrack oom {}", report.info.path)});
}

void hint_at_fragmentation(const Report& report, const DeviceReport& device,
                           std::vector<Hint>& hints) {
  const auto row = device.moment.categories.sub_rows.find("cached/fragmented");
  if (row == device.moment.categories.sub_rows.end()) return;
  const uint64_t in_use = device.moment.totals.in_use;
  if (row->second.bytes < in_use / kPartThatMatters) return;
  hints.push_back(
      {fmt::format("fragmented: {} ({} %) is reserved in segments that live blocks keep",
                   quantity(row->second.bytes), percent(row->second.bytes, in_use)),
       fmt::format("vramtrack fragmentation {}", report.info.path)});
}

}  // namespace

std::vector<Hint> hints_for(const Report& report) {
  std::vector<Hint> hints;
  for (const DeviceReport& device : report.devices) {
    hint_at_cause(report, device, hints);
    hint_at_fragmentation(report, device, hints);
  }
  return hints;
}

}  // namespace vramtrack
