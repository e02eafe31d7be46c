#include "commands/oom_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "commands/latest_recording.h"
#include "diagnosis/oom/oom_recording_report.h"
#include "diagnosis/oom/oom_text_report.h"
#include "diagnosis/oom/text_diagnosis.h"
#include "import/open.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr int kNotRecognised = 3;
constexpr size_t kMaxText = 64 * 1024 * 1024;

struct OomOptions {
  std::string file;
  std::string message;
  int16_t device = -1;
  size_t top = 12;
  bool json = false;
};

std::string read_standard_input() {
  std::string text;
  char buffer[64 * 1024];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) {
    text.append(buffer, got);
    if (text.size() > kMaxText) {
      throw InputError(
          "the text on standard input is longer than 64 MiB; pass the part around the error");
    }
  }
  return text;
}

void print_json(const nlohmann::ordered_json& json) {
  // Text that was not UTF-8 must not make the JSON invalid.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void explain_message(const OomOptions& options) {
  const std::string text = options.message == "-" ? read_standard_input() : options.message;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError("the text is empty; give the error as it was printed, or a log that holds it");
  const auto diagnosis = diagnose_text(text);
  if (!diagnosis) {
    if (options.json) {
      const nlohmann::ordered_json json = {
          {"schema", "vramtrack.oom/1"}, {"source", "message"}, {"recognised", false}};
      print_json(json);
    } else {
      fmt::print("not recognised: no out-of-memory message of a known library in this text\n");
    }
    throw CLI::RuntimeError(kNotRecognised);
  }
  if (options.json) {
    print_json(json_report(*diagnosis));
  } else {
    fmt::print("{}", text_report(*diagnosis));
  }
}

void explain_recording(const OomOptions& options) {
  const auto recording = open_recording(recording_or_latest(options.file));
  const RecordingDiagnosis diagnosis = diagnose_recording(*recording, options.device);
  if (options.json) {
    print_json(json_report(recording->info(), diagnosis));
  } else {
    fmt::print("{}", text_report(recording->info(), diagnosis, options.top));
  }
}

}  // namespace

void add_oom_command(CLI::App& app) {
  auto options = std::make_shared<OomOptions>();
  CLI::App* command = app.add_subcommand(
      "oom", "Why it ran out of memory: from a recording, or from the text of the error");
  CLI::Option* file = command->add_option(
      "FILE", options->file,
      "Trace or PyTorch snapshot; the latest trace of this folder if not given");
  command
      ->add_option("--message", options->message,
                   "The text of the error, or a log that holds it; - reads standard input")
      ->excludes(file);
  command->add_option("--device", options->device, "Only this device");
  command->add_option("--top", options->top, "How many lines of the program to show")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->callback([options, command] {
    if (command->count("--message") != 0) {
      explain_message(*options);
    } else {
      explain_recording(*options);
    }
  });
}

}  // namespace vramtrack
