// vramtrack, the command line. Each command is one file that registers itself here; what they
// share is how they fail: one line on stderr, exit code 2.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>

#include "commands/audit_command.h"
#include "commands/blocks_command.h"
#include "commands/check_command.h"
#include "commands/diff_command.h"
#include "commands/estimate_command.h"
#include "commands/fragmentation_command.h"
#include "commands/growth_command.h"
#include "commands/leaks_command.h"
#include "commands/oom_command.h"
#include "commands/report_command.h"
#include "commands/run_command.h"
#include "commands/sweep_command.h"
#include "commands/symbolize_command.h"
#include "commands/waste_command.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace vramtrack {
namespace {

// In the order in which --help lists them.
// clang-format off
constexpr void (*kCommands[])(CLI::App&) = {
    add_run_command,
    add_report_command,
    add_blocks_command,
    add_oom_command,
    add_fragmentation_command,
    add_leaks_command,
    add_waste_command,
    add_diff_command,
    add_growth_command,
    add_sweep_command,
    add_estimate_command,
    add_symbolize_command,
    add_check_command,
    add_audit_command,
};
// clang-format on

constexpr int kBadInput = 2;

int run(int argc, char** argv) {
  CLI::App app{"heaptrack for GPU memory: what filled the card, and which lines did it"};
  app.name("vramtrack");
  app.set_version_flag("--version", "vramtrack " VRAMTRACK_VERSION);
  app.require_subcommand(1);
  bool salvage = false;
  app.add_flag("--salvage", salvage, "Read what is left of a damaged trace");
  // Runs before the command's own callback.
  app.parse_complete_callback(
      [&salvage] { set_damage_policy(salvage ? Damage::salvage : Damage::refuse); });
  for (const auto add_command : kCommands) add_command(app);

  try {
    app.parse(split_run_command(argc, argv), argv);
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a command's own exit code
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "vramtrack: {}; see `vramtrack --help`\n", error.what());
  } catch (const InputError& error) {
    fmt::print(stderr, "vramtrack: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "vramtrack: the input needs more memory than there is\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "vramtrack: {}\n", error.what());
  }
  return kBadInput;
}

}  // namespace
}  // namespace vramtrack

int main(int argc, char** argv) {
  return vramtrack::run(argc, argv);
}
