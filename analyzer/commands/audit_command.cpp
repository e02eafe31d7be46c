#include "commands/audit_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/json_report.h"
#include "report/witness_report.h"

namespace vramtrack {

void add_audit_command(CLI::App& app) {
  struct Arguments {
    std::string file;
    bool json = false;
    size_t top = 12;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "audit", "What the hooks saw and CUPTI did not, and the reverse (record with run --cupti)");
  command->add_option("FILE", arguments->file,
                      "Trace; the latest trace of this folder if not given");
  command->add_option("--top", arguments->top, "How many lines of each table to show")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print JSON (docs/json.md)");
  command->callback([arguments] {
    const auto recording = open_recording(recording_or_latest(arguments->file));
    const WitnessAudit audit = audit_witnesses(*recording);
    fmt::print("{}", arguments->json ? dump(json_audit(*recording, audit))
                                     : text_audit(*recording, audit, arguments->top));
  });
}

}  // namespace vramtrack
