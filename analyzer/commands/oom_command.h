// vramtrack oom: why did it run out of memory?
#ifndef VRAMTRACK_ANALYZER_COMMANDS_OOM_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_OOM_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_oom_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_OOM_COMMAND_H
