// `vramtrack waste`: memory that is held and not used.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_WASTE_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_WASTE_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_waste_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_WASTE_COMMAND_H
