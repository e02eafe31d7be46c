#include "commands/check_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/check_report.h"
#include "report/json_report.h"

namespace vramtrack {

void add_check_command(CLI::App& app) {
  struct Arguments {
    std::string file;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("check", "Is a recording whole, and do its numbers agree?");
  command->add_option("FILE", arguments->file,
                      "Trace or PyTorch snapshot; the latest trace of this folder if not given");
  command->add_flag("--json", arguments->json, "Print JSON (docs/json.md)");
  command->callback([arguments] {
    const auto recording = open_recording(recording_or_latest(arguments->file));
    const CheckReport report = check(*recording);
    fmt::print("{}", arguments->json ? dump(json_check(report)) : text_check(report));
  });
}

}  // namespace vramtrack
