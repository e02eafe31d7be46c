#include "commands/leaks_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/leak_report.h"

namespace vramtrack {
namespace {

constexpr int kLeaks = 1;

struct LeaksOptions {
  std::string file;
  size_t top = 10;
  bool json = false;
  bool holders = false;
  double fail_over = -1;
};

void run_leaks(const LeaksOptions& options) {
  const auto recording = open_recording(recording_or_latest(options.file));
  const Timeline timeline = survey(*recording);
  const LeakReport report = find_leaks(*recording, timeline);
  if (options.json) {
    const auto json =
        options.holders ? holders_json(report, *recording) : leak_json(report, *recording);
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (options.holders) {
    fmt::print("{}", holders_text(report, *recording));
  } else {
    fmt::print("{}", leak_text(report, *recording, options.top));
  }
  if (options.fail_over < 0) return;
  double rate = 0;
  for (const LeakFinding& finding : report.findings) rate += finding.bytes_per_step;
  if (rate <= options.fail_over) return;
  fmt::print(stderr, "vramtrack: leaks {:.0f} bytes per step, over the limit of {:.0f}\n", rate,
             options.fail_over);
  throw CLI::RuntimeError(kLeaks);
}

}  // namespace

void add_leaks_command(CLI::App& app) {
  auto options = std::make_shared<LeaksOptions>();
  CLI::App* command = app.add_subcommand(
      "leaks", "What grows in a long job, from which line, and when it will die");
  command->add_option("file", options->file, "Trace or snapshot; the latest trace if none");
  command->add_option("--top", options->top, "Findings to show")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.leaks/1)");
  command->add_flag("--holders", options->holders,
                    "List who holds what grows, as the helper saw it inside the process");
  command
      ->add_option("--fail-over", options->fail_over,
                   "Exit with 1 if all leaks together exceed this many bytes per step")
      ->check(CLI::NonNegativeNumber);
  command->callback([options] { run_leaks(*options); });
}

}  // namespace vramtrack
