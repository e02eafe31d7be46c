// vramtrack diff: what changed between two recordings.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_DIFF_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_DIFF_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_diff_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_DIFF_COMMAND_H
