#include "commands/leaks_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/job_report.h"
#include "report/leak_report.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr int kLeaks = 1;

struct LeaksOptions {
  std::string file;
  size_t top = 10;
  bool json = false;
  bool holders = false;
  double fail_over = -1;
  double idle = 60;
};

double rate_of(const LeakReport& report) {
  double rate = 0;
  for (const LeakFinding& finding : report.findings)
    if (is_leak(finding.kind)) rate += finding.bytes_per_step;
  return rate;
}

void print(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void fail_if_over(const LeaksOptions& options, double rate) {
  if (options.fail_over < 0 || rate <= options.fail_over) return;
  fmt::print(stderr, "vramtrack: leaks {:.0f} bytes per step, over the limit of {:.0f}\n", rate,
             options.fail_over);
  throw CLI::RuntimeError(kLeaks);
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

// A folder: the processes of a job, one recording each.
void run_job(const LeaksOptions& options) {
  JobReport report;
  report.folder = options.file;
  report.idle_after_s = options.idle;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(options.file))
    if (entry.path().extension() == ".vrt" && !entry.is_symlink()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  struct Read {
    JobProcess process;
    size_t leaks = 0;
    double rate = 0;
  };
  std::vector<Read> read;
  for (const auto& file : files) {
    try {
      const auto recording = open_recording(file);
      const LeakReport leaks = find_leaks(*recording, survey(*recording));
      read.push_back({.process = summarize(*recording, now_ns()),
                      .leaks = leaks.findings.size(),
                      .rate = rate_of(leaks)});
    } catch (const InputError& error) {
      report.notes.emplace_back(error.what());
    }
  }
  if (read.empty())
    throw InputError(fmt::format("no trace in {}; make some with `vramtrack run -o {}/ -- PROGRAM`",
                                 options.file, options.file));
  std::stable_sort(read.begin(), read.end(), [](const Read& a, const Read& b) {
    return a.process.begin_ns < b.process.begin_ns;
  });
  double rate = 0;
  for (Read& one : read) {
    report.processes.push_back(std::move(one.process));
    report.leaks.push_back(one.leaks);
    report.bytes_per_step.push_back(one.rate);
    rate += one.rate;
  }
  report.idle = idle_processes(report.processes, options.idle);
  report.silent = silent_processes(report.processes, options.idle);
  if (options.json)
    print(job_json(report));
  else
    fmt::print("{}", job_text(report));
  fail_if_over(options, rate);
}

void run_leaks(const LeaksOptions& options) {
  if (std::filesystem::is_directory(options.file)) return run_job(options);
  const auto recording = open_recording(recording_or_latest(options.file));
  const Timeline timeline = survey(*recording);
  const LeakReport report = find_leaks(*recording, timeline);
  if (options.json) {
    print(options.holders ? holders_json(report, *recording) : leak_json(report, *recording));
  } else if (options.holders) {
    fmt::print("{}", holders_text(report, *recording));
  } else {
    fmt::print("{}", leak_text(report, *recording, options.top));
  }
  fail_if_over(options, rate_of(report));
}

}  // namespace

void add_leaks_command(CLI::App& app) {
  auto options = std::make_shared<LeaksOptions>();
  CLI::App* command = app.add_subcommand(
      "leaks", "What grows in a long job, from which line, and when it will die");
  command->add_option(
      "file", options->file,
      "Trace or snapshot; the latest trace if none; a folder of traces: the processes of a job");
  command->add_option("--top", options->top, "Findings to show")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.leaks/1)");
  command->add_flag("--holders", options->holders,
                    "List who holds what grows, as the helper saw it inside the process");
  command
      ->add_option("--fail-over", options->fail_over,
                   "Exit with 1 if all leaks together exceed this many bytes per step")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--idle", options->idle,
                   "Of a folder: seconds without work after which a process counts as forgotten")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->callback([options] { run_leaks(*options); });
}

}  // namespace vramtrack
