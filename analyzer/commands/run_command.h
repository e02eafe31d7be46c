#ifndef VRAMTRACK_ANALYZER_COMMANDS_RUN_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_RUN_COMMAND_H

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vramtrack {

// vramtrack run: starts a program with the tracer in it, returns what it returns, and leaves traces
// that can be read on any machine.
void add_run_command(CLI::App& app);

// Cuts the program and its arguments off a `run`: from the first word that is no option, or after
// --. Of a `sweep` only after --. Returns how many words are left for the option parser.
int split_run_command(int argc, char** argv);
const std::vector<std::string>& program_to_run();  // what was cut off

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_RUN_COMMAND_H
