// What a traced program's environment holds beyond the user's own: the libraries to preload and the
// options of the tracer. docs/options.md lists the variables.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_RUN_ENVIRONMENT_H
#define VRAMTRACK_ANALYZER_COMMANDS_RUN_ENVIRONMENT_H

#include <string>
#include <utility>
#include <vector>

namespace vramtrack {

struct RunOptions {
  std::string output;             // file or folder, absolute; a folder ends in '/'
  std::string stacks = "both";    // both, python, native, none
  std::string kernels = "names";  // names, on, off
  std::string simulate;           // empty: the machine's own GPU
  std::string events;             // "late:<seed>", of the simulated GPU; empty: at once
  int stop_after_steps = -1;      // steady ones; 0: never; -1: not given
  uint64_t ring_bytes = 0;        // keep the last so many bytes of events; 0: all
  uint64_t sample_bytes = 0;      // record one block in so many bytes; 0: all
  bool cpu = false;
  bool cupti = false;
  bool force = false;
  std::vector<std::string> allow_writes;  // folders in which a rehearsal may overwrite files
  std::vector<std::string> command;
};

// After how many steady steps the program is ended: the option, else VRAMTRACK_STOP_AFTER_STEPS,
// else 3 on the simulated GPU; 0: never. Throws InputError where the variable is no number.
int steady_steps(const RunOptions& options);

using Variables = std::vector<std::pair<std::string, std::string>>;

// `job_list` is the file into which each traced process writes the name of its trace. Throws
// InputError where a library of ours is missing.
Variables run_environment(const RunOptions& options, const std::string& job_list);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_RUN_ENVIRONMENT_H
