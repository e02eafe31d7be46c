// vramtrack estimate: what a model will need, before anything runs.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_ESTIMATE_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_ESTIMATE_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_estimate_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_ESTIMATE_COMMAND_H
