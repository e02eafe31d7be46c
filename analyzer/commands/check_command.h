// vramtrack check: is this recording whole, and do its numbers agree?
#ifndef VRAMTRACK_ANALYZER_COMMANDS_CHECK_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_CHECK_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_check_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_CHECK_COMMAND_H
