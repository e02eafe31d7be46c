#include "commands/oom_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "diagnosis/oom_text_report.h"
#include "diagnosis/text_diagnosis.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

constexpr int kNotRecognised = 3;
constexpr size_t kMaxText = 64 * 1024 * 1024;

struct OomOptions {
  std::string file;
  std::string message;
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

void explain_message(const OomOptions& options) {
  const std::string text = options.message == "-" ? read_standard_input() : options.message;
  const auto diagnosis = diagnose_text(text);
  if (!diagnosis) {
    if (options.json) {
      const nlohmann::ordered_json json = {
          {"schema", "vramtrack.oom/1"}, {"source", "message"}, {"recognised", false}};
      fmt::print("{}\n", json.dump(2));
    } else {
      fmt::print("not recognised: no out-of-memory message of a known library in this text\n");
    }
    throw CLI::RuntimeError(kNotRecognised);
  }
  if (options.json) {
    fmt::print(
        "{}\n",
        json_report(*diagnosis).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", text_report(*diagnosis));
  }
}

}  // namespace

void add_oom_command(CLI::App& app) {
  auto options = std::make_shared<OomOptions>();
  CLI::App* command = app.add_subcommand("oom", "explain an out-of-memory error");
  command->add_option("--message", options->message,
                      "the text of the error, or a log that holds it; - reads standard input");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options, command] {
    if (command->count("--message") == 0) throw CLI::RequiredError("--message");
    explain_message(*options);
  });
}

}  // namespace vramtrack
