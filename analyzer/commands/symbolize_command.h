// vramtrack symbolize FILE: stores the symbols in a trace that a bare preload wrote.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_SYMBOLIZE_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_SYMBOLIZE_COMMAND_H

#include <CLI/CLI.hpp>

namespace vramtrack {

void add_symbolize_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_SYMBOLIZE_COMMAND_H
