// vramtrack leaks: what grows in a long job, from which line, and when it will die.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_LEAKS_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_LEAKS_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_leaks_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_LEAKS_COMMAND_H
