// vramtrack report: what filled the memory, at its peak or at any moment.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_REPORT_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_REPORT_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_report_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_REPORT_COMMAND_H
