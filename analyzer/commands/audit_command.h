// vramtrack audit: what our hooks saw and CUPTI did not, and the reverse.
#ifndef VRAMTRACK_ANALYZER_COMMANDS_AUDIT_COMMAND_H
#define VRAMTRACK_ANALYZER_COMMANDS_AUDIT_COMMAND_H

namespace CLI {
class App;
}

namespace vramtrack {

void add_audit_command(CLI::App& app);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_COMMANDS_AUDIT_COMMAND_H
