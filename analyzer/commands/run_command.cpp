#include "commands/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "commands/run_environment.h"
#include "commands/run_job.h"
#include "commands/run_outcome.h"
#include "trace/input_error.h"
#include "wording/units.h"

namespace fs = std::filesystem;

namespace vramtrack {
namespace {

// Better now than after an hour of training.
void require_writable(const fs::path& folder) {
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw InputError(fmt::format("cannot write to {}: {}; choose another folder with -o",
                                 folder.string(), std::strerror(errno)));
}

// A folder is made where it is missing; a file must not exist, or be given up by --force.
void prepare_output(RunOptions& options) {
  const bool named = !options.output.empty();
  const bool folder = !named || options.output.back() == '/' || fs::is_directory(options.output);
  const fs::path path = fs::absolute(named ? options.output : ".").lexically_normal();
  options.output = path.string();
  std::error_code error;
  if (folder) {
    fs::create_directories(path, error);
    if (error)
      throw InputError(
          fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
    if (options.output.back() != '/') options.output += '/';
    require_writable(path);
    return;
  }
  if (!fs::is_directory(path.parent_path()))
    throw InputError(fmt::format("there is no folder {}", path.parent_path().string()));
  require_writable(path.parent_path());
  if (!fs::exists(path)) return;
  if (!options.force)
    throw InputError(fmt::format("{} exists; --force overwrites it", path.string()));
  fs::remove(path, error);
  if (error) throw InputError(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

constexpr uint64_t kLeastRing = uint64_t{1} << 20;
constexpr uint64_t kMostRing = uint64_t{1} << 40;

// Relative where that is shorter, as the user would type it.
std::string shown(const fs::path& path) {
  const std::string relative = fs::proximate(path).string();
  return relative.size() < path.string().size() ? relative : path.string();
}

// As a shell would read it back.
std::string quoted(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    if (!line.empty()) line += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=./:,@%") == std::string::npos;
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

void say_what_is_left(const RunOptions& options, const RunOutcome& outcome) {
  if (outcome.files.empty()) {
    if (options.simulate.empty())
      fmt::print(stderr,
                 "vramtrack: no GPU was used, so nothing was recorded. To rehearse on a simulated "
                 "one: vramtrack run --simulate h100-80g -- {}\n",
                 quoted(options.command));
    else
      fmt::print(stderr, "vramtrack: the simulated GPU was not used, so nothing was recorded\n");
    return;
  }
  const std::string file = shown(outcome.files.front());
  std::string text = outcome.files.size() == 1
                         ? file
                         : fmt::format("{} traces in {}", outcome.files.size(),
                                       shown(outcome.files.front().parent_path()));
  text += fmt::format(": {}, {} events, {} dropped; ", quantity(outcome.bytes), outcome.events,
                      outcome.dropped);
  if (const auto& oom = outcome.out_of_memory)
    text += fmt::format("out of memory on device {} (asked for {}, allocated {}, reserved {}); ",
                        oom->device, quantity(oom->size), quantity(oom->witness_allocated),
                        quantity(oom->witness_reserved));
  fmt::print(stderr, "vramtrack: {}next: vramtrack report {}\n", text, file);
}

// Then run_program() has said so. A shell that did not find a program returns the same.
bool could_not_start(int code) {
  return code == 126 || code == 127;
}

// All that a rehearsal does to the user's program, in one line.
void say_rehearsal(const RunOptions& options) {
  std::string text = fmt::format(
      "vramtrack: SIMULATED GPU ({}): kernels do not run and results are meaningless; Hugging Face "
      "is "
      "offline, W&B disabled; files that exist are not overwritten; ",
      options.simulate);
  const int steps = steady_steps(options);
  if (!options.events.empty()) text += fmt::format("events complete {}; ", options.events);
  text += steps == 0 ? std::string("runs to the end")
                     : fmt::format("ends after {} (--stop-after-steps)",
                                   counted(static_cast<uint64_t>(steps), "steady step"));
  fmt::print(stderr, "{}\n", text);
}

// "at-once" is the default; "late:<seed>" with a seed that is a positive number.
void check_events(RunOptions& options) {
  if (options.events.empty()) return;
  if (options.simulate.empty())
    throw InputError("--events says when events of the simulated GPU complete: add --simulate");
  const std::string_view text = options.events;
  const std::string_view seed = text.starts_with("late:") ? text.substr(5) : std::string_view();
  const bool digits =
      !seed.empty() && seed.size() < 19 && seed.find_first_not_of("0123456789") == seed.npos;
  const bool positive = digits && seed.find_first_not_of('0') != seed.npos;
  if (text == "at-once")
    options.events.clear();
  else if (!positive)
    throw InputError(
        fmt::format("--events {}: at-once, or late:<seed> with a seed from 1", options.events));
}

int run(RunOptions options) {
  if (options.command.empty())
    throw InputError("what shall be run? vramtrack run [options] -- program arguments...");
  check_events(options);
  prepare_output(options);
  const JobList list;
  const Variables variables = run_environment(options, list.path());
  if (!options.simulate.empty()) say_rehearsal(options);
  const int code = run_program(options.command, variables);
  RunOutcome outcome;
  const std::vector<fs::path> traces = list.traces();
  if (traces.empty() && could_not_start(code)) return code;
  for (const fs::path& trace : traces) outcome.finish(trace);
  say_what_is_left(options, outcome);
  return code;
}

// The program and its arguments, which are no business of the option parser's.
std::vector<std::string> g_command;

bool takes_value(std::string_view option) {
  for (const char* one : {"-o", "--output", "--stacks", "--simulate", "--kernels", "--allow-writes",
                          "--events", "--stop-after-steps", "--ring", "--sample"})
    if (option == one) return true;
  return false;
}

}  // namespace

const std::vector<std::string>& program_to_run() {
  return g_command;
}

int split_run_command(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], "sweep") == 0) {
    for (int i = 2; i < argc; ++i) {
      if (std::strcmp(argv[i], "--") != 0) continue;
      g_command.assign(argv + i + 1, argv + argc);
      return i;
    }
    return argc;
  }
  if (argc < 2 || std::strcmp(argv[1], "run") != 0) return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool separator = word == "--";
    if (separator || word.empty() || word[0] != '-') {
      g_command.assign(argv + i + (separator ? 1 : 0), argv + argc);
      return i;
    }
    if (takes_value(word)) ++i;
  }
  return argc;
}

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Trace a program: vramtrack run -- python train.py");
  command->add_option("-o,--output", options->output,
                      "Trace file, or folder for the traces (default: the current folder)");
  command->add_flag("--force", options->force, "Overwrite the file that -o names");
  command->add_option("--stacks", options->stacks, "Whose frames to record")
      ->check(CLI::IsMember({"both", "python", "native", "none"}))
      ->capture_default_str();
  command->add_flag("--cpu", options->cpu, "Trace CPU tensors of PyTorch as well");
  command->add_option(
      "--simulate", options->simulate,
      "Rehearse without a GPU, on a simulated one: h100-80g, 2x a100-40g, 8GiB ...");
  command
      ->add_option("--allow-writes", options->allow_writes,
                   "A folder in which a rehearsal may overwrite files (may be repeated)")
      ->allow_extra_args(false);
  command
      ->add_option("--stop-after-steps", options->stop_after_steps,
                   "End the program after so many steps that leave memory as the one before did "
                   "(default: 3 with --simulate, else 0; 0: never)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--events", options->events,
                      "When events of the simulated GPU complete: at-once, or late:<seed>");
  command
      ->add_option("--kernels", options->kernels,
                   "Record which kernel follows an allocation; on: and what each launch touches")
      ->check(CLI::IsMember({"names", "on", "off"}))
      ->capture_default_str();
  command
      ->add_option("--ring", options->ring_bytes,
                   "Keep only the last SIZE of events, and what is live when they begin")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(kLeastRing, kMostRing));
  command
      ->add_option("--sample", options->sample_bytes,
                   "Record a sample of the blocks: one in so many BYTES that are allocated")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, kMostRing));
  command->add_flag("--cupti", options->cupti,
                    "Let CUPTI witness memory and kernels too; vramtrack audit compares");
  command->footer("vramtrack run [options] -- program arguments...");
  command->callback([options] {
    options->command = g_command;
    const int code = run(*options);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace vramtrack
