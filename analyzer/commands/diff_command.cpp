#include "commands/diff_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "import/open.h"
#include "report/difference.h"

namespace vramtrack {
namespace {

constexpr int kGrewTooMuch = 1;

struct DiffOptions {
  std::string before;
  std::string after;
  std::string at;
  size_t top = 10;
  bool json = false;
  std::string fail_over;
};

void run_diff(const DiffOptions& options) {
  const auto before = open_recording(options.before);
  const auto after = open_recording(options.after);
  const Difference difference = compare(*before, *after, options.at);
  if (options.json) {
    fmt::print(
        "{}\n",
        difference_json(difference).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", difference_text(difference, options.top));
  }
  if (options.fail_over.empty()) return;
  const auto limit = static_cast<int64_t>(std::stoull(options.fail_over));
  for (const DeviceDifference& device : difference.devices) {
    if (device.peak_bytes <= limit) continue;
    fmt::print(stderr, "vramtrack: GPU {} allocates {} bytes more, over the limit of {}\n",
               device.device, device.peak_bytes, limit);
    throw CLI::RuntimeError(kGrewTooMuch);
  }
}

}  // namespace

void add_diff_command(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "What changed between two traces or snapshots");
  command->add_option("before", options->before, "Trace or snapshot of the first run")->required();
  command->add_option("after", options->after, "Trace or snapshot of the second run")->required();
  command->add_option("--at", options->at,
                      "Moment of both: oom, allocated-peak, peak, end, mark:NAME or seconds");
  command->add_option("--top", options->top, "Rows per table")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (vramtrack.diff/1)");
  command
      ->add_option("--fail-over", options->fail_over,
                   "Exit with 1 if the allocated bytes rise by more than this many")
      ->check(CLI::NonNegativeNumber);
  command->callback([options] { run_diff(*options); });
}

}  // namespace vramtrack
