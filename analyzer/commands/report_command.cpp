#include "commands/report_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/build_report.h"
#include "report/json_report.h"
#include "report/markdown_report.h"
#include "report/text_report.h"

namespace vramtrack {
namespace {

struct Arguments {
  std::string file;
  std::string by;
  ReportOptions report;
  bool json = false;
  bool markdown = false;
};

void run(Arguments arguments) {
  arguments.report.by = grouping_named(arguments.by).value_or(Grouping::category);
  arguments.report.expand = !arguments.by.empty();
  const auto recording = open_recording(recording_or_latest(arguments.file));
  const Report report = build_report(*recording, arguments.report);
  if (arguments.json) {
    fmt::print("{}", dump(json_report(report)));
  } else if (arguments.markdown) {
    fmt::print("{}", markdown_report(report));
  } else {
    fmt::print("{}", text_report(report));
  }
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("report", "What filled the memory, at its peak or at any other moment");
  command->add_option("FILE", arguments->file,
                      "Trace or PyTorch snapshot; the latest trace of this folder if not given");
  command->add_option(
      "--at", arguments->report.at,
      "oom, allocated-peak, peak, reserved-peak, end, mark:NAME, step:N or SECONDS; "
      "the OOM if there is one, else the peak of allocated memory, if not given");
  command
      ->add_option("--by", arguments->by,
                   "How live memory is grouped, each row with its call sites; if not given, by "
                   "category without them")
      ->check(CLI::IsMember({"category", "site", "module", "phase", "step", "kernel"}));
  command->add_option("--category", arguments->report.category,
                      "Only this category or row, e.g. activations or activations/logits");
  command->add_option("--top", arguments->report.top, "How many rows of each table to show")
      ->capture_default_str();
  auto* json = command->add_flag("--json", arguments->json, "Print JSON (docs/json.md)");
  command->add_flag("--markdown", arguments->markdown, "Print Markdown")->excludes(json);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace vramtrack
