#include "commands/sweep_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "commands/run_command.h"
#include "commands/run_environment.h"
#include "commands/run_job.h"
#include "commands/run_outcome.h"
#include "commands/sweep_points.h"
#include "import/open.h"
#include "report/growth_table.h"
#include "trace/input_error.h"

namespace fs = std::filesystem;

namespace vramtrack {
namespace {

constexpr int kRunsFailed = 1;

struct SweepOptions {
  std::vector<std::string> sets;
  std::string output;
  RunOptions run;
  std::string at;
  std::vector<double> predict;
  double capacity_gib = 0;
  size_t top = 10;
  bool json = false;
};

struct SweepRun {
  SweepPoint point;
  int exit_code = 0;
  std::string outcome;  // "fine", "ran out of memory", "failed", "used no GPU"
  std::string said;     // the last line of what a failed run printed
  fs::path log;
  std::optional<fs::path> trace;

  [[nodiscard]] bool counts() const { return outcome == "fine" || outcome == "ran out of memory"; }
};

// Growth over the first variable while the others stand still.
struct SweepGroup {
  std::string fixed;
  std::optional<GrowthTable> table;
  std::string problem;
};

// Where the traces go: the user's folder, or one of our own that goes with us.
class SweepFolder {
 public:
  explicit SweepFolder(const std::string& wanted) : kept_(!wanted.empty()) {
    std::error_code error;
    if (kept_) {
      path_ = fs::absolute(wanted).lexically_normal();
      fs::create_directories(path_, error);
      if (error)
        throw InputError(
            fmt::format("cannot make the folder {}: {}", path_.string(), error.message()));
      return;
    }
    std::string name = (fs::temp_directory_path() / "vramtrack-sweep-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw InputError(fmt::format("cannot make a folder in {}; set TMPDIR or use -o",
                                   fs::temp_directory_path().string()));
    path_ = name;
  }
  ~SweepFolder() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] bool kept() const { return kept_; }

 private:
  fs::path path_;
  bool kept_;
};

// Drawn before each run, since a run may take minutes; on a terminal only.
void draw_progress(size_t done, size_t total, const std::string& label) {
  if (isatty(STDERR_FILENO) == 0) return;
  constexpr size_t kWidth = 30;
  fmt::print(stderr, "\r\033[K[{:<{}}] {}/{} {}", std::string(kWidth * done / total, '='), kWidth,
             done, total, label.substr(0, 40));
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
}

std::string last_line(const fs::path& log) {
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return last.substr(0, 300);
}

// Of a job's processes the one that held most.
std::optional<fs::path> main_trace(const std::vector<fs::path>& traces) {
  std::optional<fs::path> best;
  uint64_t most = 0;
  for (const fs::path& path : traces) {
    const Timeline timeline = survey(*open_recording(path));
    for (const auto& [device, course] : timeline.devices) {
      const uint64_t held = std::max(course.most_in_use, course.most_allocated);
      if (device < 0 || held <= most) continue;
      most = held;
      best = path;
    }
  }
  return best;
}

SweepRun run_point(const SweepOptions& options, const fs::path& folder, SweepPoint point) {
  SweepRun run;
  run.point = std::move(point);
  RunOptions job = options.run;
  const fs::path trace = folder / (run.point.label() + ".vrt");
  if (fs::exists(trace)) {
    if (!options.run.force)
      throw InputError(fmt::format("{} exists; --force overwrites it", trace.string()));
    fs::remove(trace);
  }
  run.log = folder / (run.point.label() + ".log");
  job.output = trace.string();
  job.command = run.point.command;
  const JobList list;
  run.exit_code = run_program(job.command, run_environment(job, list.path()), run.log);
  RunOutcome outcome;
  for (const fs::path& left : list.traces()) outcome.finish(left);
  run.trace = main_trace(outcome.files);
  if (run.exit_code != 0 && (outcome.out_of_memory || outcome.refused != 0))
    run.outcome = "ran out of memory";
  else if (run.exit_code != 0)
    run.outcome = "failed";
  else
    run.outcome = run.trace ? "fine" : "used no GPU";
  if (run.exit_code != 0) run.said = last_line(run.log);
  return run;
}

bool interrupted(int exit_code) {
  return exit_code == 128 + SIGINT || exit_code == 128 + SIGTERM;
}

std::vector<SweepRun> run_all(const SweepOptions& options, const fs::path& folder,
                              std::vector<SweepPoint> points) {
  std::vector<SweepRun> runs;
  for (SweepPoint& point : points) {
    draw_progress(runs.size(), points.size(), point.label());
    runs.push_back(run_point(options, folder, std::move(point)));
    if (!interrupted(runs.back().exit_code)) continue;
    clear_progress();
    fmt::print(stderr, "vramtrack: stopped at {}\n", runs.back().point.label());
    throw CLI::RuntimeError(runs.back().exit_code);
  }
  clear_progress();
  return runs;
}

SweepGroup fit_group(const SweepOptions& options, const std::string& variable,
                     const std::string& fixed, const std::vector<SweepRun>& runs) {
  SweepGroup group{fixed, std::nullopt, {}};
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<GrowthInput> inputs;
  for (const SweepRun& run : runs) {
    if (run.point.fixed() != fixed || !run.counts() || !run.trace) continue;
    recordings.push_back(open_recording(*run.trace));
    inputs.push_back({run.point.x, recordings.back().get(), run.outcome == "ran out of memory"});
  }
  try {
    group.table = build_growth_table(variable, std::move(inputs), options.at);
  } catch (const InputError& error) {
    group.problem = error.what();
  }
  return group;
}

std::vector<SweepGroup> fit_all(const SweepOptions& options, const std::string& variable,
                                const std::vector<SweepRun>& runs) {
  std::vector<SweepGroup> groups;
  for (const SweepRun& run : runs) {
    const std::string fixed = run.point.fixed();
    const auto same = [&fixed](const SweepGroup& group) { return group.fixed == fixed; };
    if (std::none_of(groups.begin(), groups.end(), same))
      groups.push_back(fit_group(options, variable, fixed, runs));
  }
  return groups;
}

uint64_t capacity_of(const SweepOptions& options) {
  return static_cast<uint64_t>(options.capacity_gib * 1024 * 1024 * 1024);
}

void print_text(const SweepOptions& options, const SweepFolder& folder,
                const std::vector<SweepRun>& runs, const std::vector<SweepGroup>& groups) {
  for (const SweepRun& run : runs) {
    if (run.outcome == "fine") continue;
    fmt::print("{}: {} (exit code {}){}\n", run.point.label(), run.outcome, run.exit_code,
               run.outcome == "ran out of memory" ? ": a lower bound, left out of the laws"
                                                  : ": left out");
    if (!run.said.empty()) fmt::print("  {}\n", run.said.substr(0, 88));
  }
  for (const SweepGroup& group : groups) {
    if (!group.fixed.empty()) fmt::print("\n== {} ==\n", group.fixed);
    if (group.table)
      fmt::print("{}",
                 growth_text(*group.table, capacity_of(options), options.predict, options.top));
    else
      fmt::print("{}\n", group.problem);
  }
  if (folder.kept())
    fmt::print("\ntraces and logs are in {}\n", folder.path().string());
  else
    fmt::print("\nthe traces were thrown away; -o DIR keeps them\n");
}

void print_json(const SweepOptions& options, const SweepFolder& folder, const std::string& variable,
                const std::vector<SweepRun>& runs, const std::vector<SweepGroup>& groups) {
  nlohmann::ordered_json json = {{"schema", "vramtrack.sweep/1"},
                                 {"variable", variable},
                                 {"simulated", !options.run.simulate.empty()},
                                 {"command", program_to_run()}};
  json["runs"] = nlohmann::ordered_json::array();
  for (const SweepRun& run : runs) {
    nlohmann::ordered_json entry;
    for (const auto& [name, value] : run.point.values) entry["values"][name] = value;
    entry["exit_code"] = run.exit_code;
    entry["outcome"] = run.outcome;
    entry["said"] = run.said;
    const bool kept = folder.kept() && run.trace;
    entry["trace"] = kept ? nlohmann::ordered_json(run.trace->string()) : nullptr;
    entry["log"] = folder.kept() ? nlohmann::ordered_json(run.log.string()) : nullptr;
    json["runs"].push_back(std::move(entry));
  }
  json["growth"] = nlohmann::ordered_json::array();
  for (const SweepGroup& group : groups)
    json["growth"].push_back(
        {{"fixed", group.fixed},
         {"problem", group.problem.empty() ? nlohmann::ordered_json(nullptr)
                                           : nlohmann::ordered_json(group.problem)},
         {"table", group.table ? growth_json(*group.table, capacity_of(options), options.predict)
                               : nlohmann::ordered_json(nullptr)}});
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run_sweep(const SweepOptions& options) {
  const std::vector<std::string>& command = program_to_run();
  if (command.empty())
    throw InputError(
        "what shall be run? vramtrack sweep --set seq=512,1024,2048 -- python train.py --seq "
        "{seq}");
  const std::vector<SweepVariable> variables = parse_sweep(options.sets);
  std::vector<SweepPoint> points = sweep_points(variables, command);
  const SweepFolder folder(options.output);
  const std::vector<SweepRun> runs = run_all(options, folder.path(), std::move(points));
  const std::string& variable = variables.front().name;
  const std::vector<SweepGroup> groups = fit_all(options, variable, runs);
  if (options.json)
    print_json(options, folder, variable, runs, groups);
  else
    print_text(options, folder, runs, groups);
  for (const SweepRun& run : runs)
    if (!run.counts()) throw CLI::RuntimeError(kRunsFailed);
  for (const SweepGroup& group : groups)
    if (!group.table) throw CLI::RuntimeError(kRunsFailed);
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand(
      "sweep",
      "Run a program at several values of a variable, traced, and fit how its memory grows");
  command
      ->add_option(
          "--set", options->sets,
          "NAME=VALUE,VALUE,...: {NAME} in the command becomes each; fitted over the first "
          "--set, once for each combination of the others")
      ->required()
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "Folder for traces and logs, which are kept");
  command->add_flag("--force", options->run.force, "Overwrite traces that are there");
  command->add_option(
      "--simulate", options->run.simulate,
      "Rehearse without a GPU, on a simulated one: h100-80g, 2x a100-40g, 8GiB ...");
  command
      ->add_option("--stop-after-steps", options->run.stop_after_steps,
                   "End each run after so many steps that leave memory as the one before did "
                   "(default: 3 with --simulate, else 0; 0: never)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--stacks", options->run.stacks, "Whose frames to record")
      ->check(CLI::IsMember({"both", "python", "native", "none"}))
      ->capture_default_str();
  command->add_option("--at", options->at,
                      "Moment of each: oom, allocated-peak, peak, end, mark:NAME or seconds");
  command->add_option("--predict", options->predict, "Predict the peak at these values")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--capacity", options->capacity_gib, "Size of the card in GiB: what fits it")
      ->check(CLI::PositiveNumber);
  command->add_option("--top", options->top, "Rows of the table by site")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.sweep/1)");
  command->footer(
      "vramtrack sweep --set seq=512,1024,2048 [options] -- python train.py --seq {seq}");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace vramtrack
