// What a traced job left behind: its traces, finished, and what stands in them.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_RUN_OUTCOME_H
#define VRAMTRACK_ANALYZER_COMMANDS_RUN_OUTCOME_H

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "trace/recording.h"

namespace vramtrack {

struct RunOutcome {
  std::vector<std::filesystem::path> files;  // that can be read
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t dropped = 0;
  uint64_t refused = 0;                // requests that the driver refused
  std::optional<Event> out_of_memory;  // as a caching allocator reports it

  // Stores the names of native functions in the trace, gives the unused part of its window back to
  // the disk, and adds it up. One that cannot be read is named on stderr.
  void finish(const std::filesystem::path& trace);
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_RUN_OUTCOME_H
