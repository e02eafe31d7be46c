// vramtrack growth: how memory grows with sequence length, batch or layers.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_GROWTH_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_GROWTH_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_growth_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_GROWTH_COMMAND_H
