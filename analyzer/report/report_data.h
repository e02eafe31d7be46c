// A report, before it is text: what text, Markdown and JSON all show.
#ifndef VRAMTRACK_ANALYZER_REPORT_REPORT_DATA_H
#define VRAMTRACK_ANALYZER_REPORT_REPORT_DATA_H

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/oom/oom_scene.h"
#include "report/call_sites.h"
#include "report/groups.h"
#include "report/module_tree.h"

namespace vramtrack {

// One device at one moment.
struct MomentView {
  Moment moment;
  std::string phase;  // innermost one of the thread that made the moment; empty: none
  DeviceTotals totals;
  uint64_t allocated = 0;  // by the rule of DeviceTimeline
  CategoryTable categories;
  Outside outside;
  HostTotals host;
};

struct DeviceReport {
  int16_t device = 0;  // -1: CPU tensors
  std::string name;
  uint64_t total_bytes = 0;  // 0 unknown
  DeviceTimeline course;
  MomentView peak;              // highest physical use
  MomentView allocated_peak;    // most allocated
  MomentView moment;            // what was asked for
  std::vector<CallSite> sites;  // at `moment`, largest first
  std::vector<Group> groups;    // at `moment`, by the grouping asked for
  ModuleTrees modules;          // of `groups`, where that is by module
  std::optional<OomScene> oom;  // of its last OOM
};

struct ReportOptions {
  std::string at;  // empty: the default moment
  Grouping by = Grouping::category;
  std::string category;  // only this row, or all sub-rows of this category; empty: all
  size_t top = 10;
  bool expand = false;  // rows of the grouping show the call sites they come from
};

// A finding of another command, and how to learn more.
struct Hint {
  std::string text;
  std::string command;
};

struct Report {
  RecordingInfo info;
  Timeline timeline;
  ReportOptions options;
  std::vector<DeviceReport> devices;  // those that hold anything, else all
  std::vector<Hint> hints;
  const Definitions* definitions = nullptr;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_REPORT_DATA_H
