#include "commands/growth_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "import/open.h"
#include "report/generation.h"
#include "report/growth_table.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

struct GrowthOptions {
  std::vector<std::string> files;
  std::string by;
  std::string at;
  std::string config;
  uint64_t batch = 1;
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

uint64_t capacity_of(const GrowthOptions& options) {
  return static_cast<uint64_t>(options.capacity_gib * 1024 * 1024 * 1024);
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void run_over_files(const GrowthOptions& options) {
  const auto [variable, values] = parse_by(options.by, options.files.size());
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<GrowthInput> inputs;
  for (size_t i = 0; i < options.files.size(); ++i) {
    recordings.push_back(open_recording(options.files[i]));
    inputs.push_back({values[i], recordings.back().get()});
  }
  const GrowthTable table = build_growth_table(variable, std::move(inputs), options.at);
  if (options.json)
    print_json(growth_json(table, capacity_of(options), options.predict));
  else
    fmt::print("{}", growth_text(table, capacity_of(options), options.predict, options.top));
}

// What the architecture says of a token's keys and values, in half precision.
double formula_of(const GrowthOptions& options) {
  Workload work;
  work.training = false;
  work.batch = options.batch;
  work.seq = 1;
  const Estimate estimate = estimate_memory(read_config(options.config), work);
  return static_cast<double>(estimate.categories.at("kv_cache"));
}

void run_over_tokens(const GrowthOptions& options) {
  const auto recording = open_recording(options.files.front());
  const int16_t device = growth_device(*recording);
  const Generation generation = find_generation(*recording, device);
  const GrowthTable table = generation_table(*recording, generation, device);
  const double formula = options.config.empty() ? 0 : formula_of(options);
  if (options.json) {
    nlohmann::ordered_json json = growth_json(table, capacity_of(options), options.predict);
    json["generation"] = generation_json(generation);
    if (formula > 0) json["generation"]["formula_bytes_per_token"] = formula;
    print_json(json);
    return;
  }
  fmt::print("{}", generation_text(generation));
  if (formula > 0)
    fmt::print(
        "  by {}: {:.0f} bytes per token for {} sequences in half precision, {}\n", options.config,
        formula, options.batch,
        formula == generation.bytes_per_token
            ? "the same"
            : fmt::format("measured {:.2f} times that", generation.bytes_per_token / formula));
  fmt::print("\n{}", growth_text(table, capacity_of(options), options.predict, options.top));
}

void run_growth(const GrowthOptions& options) {
  if (options.files.size() == 1 && options.by.empty()) {
    run_over_tokens(options);
    return;
  }
  if (options.by.empty())
    throw InputError(
        "name the variable and its value in each file: --by seq=512,1024,2048 (one file alone: "
        "growth per decoded token)");
  run_over_files(options);
}

}  // namespace

void add_growth_command(CLI::App& app) {
  auto options = std::make_shared<GrowthOptions>();
  CLI::App* command = app.add_subcommand(
      "growth", "How memory grows with sequence length, batch or layers: one law per category");
  command
      ->add_option("files", options->files,
                   "Traces or snapshots of one program; one alone: growth per decoded token")
      ->required();
  command->add_option("--by", options->by,
                      "The variable and its value in each file: seq=512,1024,2048,4096");
  command->add_option("--config", options->config,
                      "One file: the model's config.json, for what a token's KV should take");
  command->add_option("--batch", options->batch, "One file: sequences decoded together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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
