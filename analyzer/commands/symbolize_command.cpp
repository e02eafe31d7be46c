#include "commands/symbolize_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "symbols/symbolize_trace.h"

namespace vramtrack {
namespace {

struct Options {
  std::string file;
  bool json = false;
};

void print_json(const Options& options, const TraceSymbols& symbols) {
  const nlohmann::json out = {{"schema", "vramtrack.symbolize/1"},
                              {"file", options.file},
                              {"addresses", symbols.addresses},
                              {"named", symbols.named},
                              {"added", symbols.added},
                              {"missing_modules", symbols.missing_modules}};
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const Options& options, const TraceSymbols& symbols) {
  fmt::print("{}: {} of {} native addresses have names, {} new\n", options.file, symbols.named,
             symbols.addresses, symbols.added);
  for (const std::string& module : symbols.missing_modules)
    fmt::print("  not found, or no longer the file that was mapped: {}\n", module);
}

}  // namespace

void add_symbolize_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("symbolize", "Store the names of native functions in a trace");
  command->add_option("FILE", options->file, "A trace, on the machine where its job ran")
      ->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const TraceSymbols symbols = symbolize_trace(options->file);
    if (options->json)
      print_json(*options, symbols);
    else
      print_text(*options, symbols);
  });
}

}  // namespace vramtrack
