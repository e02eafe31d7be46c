// vramtrack blocks: every live block at a moment.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_BLOCKS_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_BLOCKS_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_blocks_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_BLOCKS_COMMAND_H
