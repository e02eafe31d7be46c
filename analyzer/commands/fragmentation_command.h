// vramtrack fragmentation: where the reserved memory is that nobody uses, and what would help.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_FRAGMENTATION_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_FRAGMENTATION_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_fragmentation_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_FRAGMENTATION_COMMAND_H
