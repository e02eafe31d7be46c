#include "commands/waste_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/json_report.h"
#include "report/waste_report.h"

namespace vramtrack {
namespace {

struct WasteOptions {
  std::string file;
  size_t top = 10;
  bool json = false;
};

void run_waste(const WasteOptions& options) {
  const auto recording = open_recording(recording_or_latest(options.file));
  const WasteReport report = find_waste(*recording);
  if (options.json)
    fmt::print("{}", dump(waste_json(report, *recording)));
  else
    fmt::print("{}", waste_text(report, *recording, options.top));
}

}  // namespace

void add_waste_command(CLI::App& app) {
  auto options = std::make_shared<WasteOptions>();
  CLI::App* command = app.add_subcommand(
      "waste", "What is held without use: never touched, too early, too late, idle");
  command->add_option("file", options->file, "Trace of `run --kernels on`; the latest if none");
  command->add_option("--top", options->top, "Findings to show")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.waste/1)");
  command->callback([options] { run_waste(*options); });
}

}  // namespace vramtrack
