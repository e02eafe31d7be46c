#include "commands/growth_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "import/open.h"
#include "report/growth_table.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

struct GrowthOptions {
  std::vector<std::string> files;
  std::string by;
  std::string at;
  std::vector<double> predict;
  double capacity_gib = 0;
  size_t top = 10;
  bool json = false;
};

// "seq=512,1024,2048" names the variable and its value in each file.
std::pair<std::string, std::vector<double>> parse_by(const std::string& by, size_t files) {
  const size_t equals = by.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError(
        "--by wants NAME=VALUE,VALUE,... with one value per file, e.g. seq=512,1024,2048");
  std::vector<double> values;
  for (size_t at = equals + 1; at <= by.size();) {
    const size_t comma = std::min(by.find(',', at), by.size());
    const std::string word = by.substr(at, comma - at);
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !(value > 0))
      throw InputError(fmt::format("--by: `{}` is not a number above 0", word));
    values.push_back(value);
    at = comma + 1;
  }
  if (values.size() != files)
    throw InputError(
        fmt::format("--by names {} values for {} files; one each is needed", values.size(), files));
  return {by.substr(0, equals), values};
}

void run_growth(const GrowthOptions& options) {
  const auto [variable, values] = parse_by(options.by, options.files.size());
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<GrowthInput> inputs;
  for (size_t i = 0; i < options.files.size(); ++i) {
    recordings.push_back(open_recording(options.files[i]));
    inputs.push_back({values[i], recordings.back().get()});
  }
  const GrowthTable table = build_growth_table(variable, std::move(inputs), options.at);
  const auto capacity = static_cast<uint64_t>(options.capacity_gib * 1024 * 1024 * 1024);
  if (options.json) {
    fmt::print("{}\n", growth_json(table, capacity, options.predict)
                           .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", growth_text(table, capacity, options.predict, options.top));
  }
}

}  // namespace

void add_growth_command(CLI::App& app) {
  auto options = std::make_shared<GrowthOptions>();
  CLI::App* command = app.add_subcommand(
      "growth", "How memory grows with sequence length, batch or layers: one law per category");
  command->add_option("files", options->files, "Traces or snapshots of one program")->required();
  command
      ->add_option("--by", options->by,
                   "The variable and its value in each file: seq=512,1024,2048,4096")
      ->required();
  command->add_option("--at", options->at,
                      "Moment of each: oom, allocated-peak, peak, end, mark:NAME or seconds");
  command->add_option("--predict", options->predict, "Predict the peak at these values")
      ->delimiter(',');
  command->add_option("--capacity", options->capacity_gib, "Size of the card in GiB: what fits it")
      ->check(CLI::PositiveNumber);
  command->add_option("--top", options->top, "Rows of the table by site")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.growth/1)");
  command->callback([options] { run_growth(*options); });
}

}  // namespace vramtrack
