#ifndef VRAMTRACK_ANALYZER_COMMANDS_SWEEP_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_SWEEP_COMMAND_H

#include <CLI/CLI.hpp>

namespace vramtrack {

// vramtrack sweep: runs a program once for each value of a variable, traced, and says how its
// memory grows.
void add_sweep_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_SWEEP_COMMAND_H
