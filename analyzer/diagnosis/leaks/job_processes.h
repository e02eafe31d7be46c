// The processes of one job: which of them hold a device's context, and memory, and do nothing.
//
// A context costs some hundred MiB of the device in every process that has one, and all that a
// process holds stays until it ends. A worker that asked for a device once and then sleeps, or one
// that nobody joined, takes that away from the others without a line of their code growing.
//
// Life is judged by what the recordings show: an allocation, a launch, a step. How long a process
// lived is known of those that ended properly, and of those that run on this machine.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_JOB_PROCESSES_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_JOB_PROCESSES_H

#include <optional>
#include <string>
#include <vector>

#include "replay/timeline.h"

namespace vramtrack {

// One recording. Times are of the clock on the wall, in ns.
struct JobProcess {
  std::string path;
  std::string host;
  std::vector<std::string> command;
  uint64_t pid = 0;
  uint64_t parent = 0;
  uint64_t begin_ns = 0;
  uint64_t last_work_ns = 0;       // the last allocation, launch or step
  std::optional<uint64_t> end_ns;  // unknown of those that were killed
  bool running = false;            // still: end_ns is when we looked
  bool simulated = false;
  bool holds_context = false;  // since its last work
  uint64_t context_bytes = 0;  // measured once, all devices; 0 unknown
  uint64_t held_bytes = 0;     // of the driver's, at its last work
  uint64_t work = 0;           // events of it
};

JobProcess summarize(const Recording& recording, uint64_t now_ns);

// One that holds a context and does nothing while the job goes on, or when it is over.
struct IdleProcess {
  size_t process = 0;   // index
  double idle_s = 0;    // from its last work to its end
  double others_s = 0;  // of that, while another one worked
  double alone_s = 0;   // of that, after all others had gone
};

// Those that are idle for longer than that.
std::vector<IdleProcess> idle_processes(const std::vector<JobProcess>& processes, double seconds);

// Those of unknown end that would be, had they lived as long as the others.
std::vector<IdleProcess> silent_processes(const std::vector<JobProcess>& processes, double seconds);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_LEAKS_JOB_PROCESSES_H
