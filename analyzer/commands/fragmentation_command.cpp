#include "commands/fragmentation_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "commands/latest_recording.h"
#include "diagnosis/fragmentation/fragmentation_report.h"
#include "import/open.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

struct FragmentationOptions {
  std::string file;
  std::string at;
  int device = -2;  // -2: all
  size_t top = 12;
  bool json = false;
};

std::vector<int16_t> devices_asked_for(const Timeline& timeline,
                                       const FragmentationOptions& options) {
  std::vector<int16_t> devices = devices_with_segments(timeline);
  if (options.device != -2) {
    if (std::find(devices.begin(), devices.end(), options.device) == devices.end())
      throw InputError(fmt::format("the recording has no allocator on device {}", options.device));
    return {static_cast<int16_t>(options.device)};
  }
  // An OOM happens on one device: the others have none to be looked at.
  if (options.at == "oom")
    std::erase_if(devices, [&](int16_t d) { return timeline.device(d)->ooms.empty(); });
  return devices;
}

void print_fragmentation(const FragmentationOptions& options) {
  const auto recording = open_recording(recording_or_latest(options.file));
  if (recording->info().sample_bytes != 0)
    throw InputError("fragmentation needs every block, and this recording has a sample (--sample)");
  const Timeline timeline = survey(*recording);
  const std::vector<int16_t> devices = devices_asked_for(timeline, options);
  if (options.at == "oom" && devices.empty())
    throw InputError("no allocation ran out of memory in this recording");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const int16_t device : devices) {
    const FragmentationReport report =
        report_fragmentation(*recording, timeline, device, options.at);
    if (options.json) {
      list.push_back(json_report(report, recording->definitions()));
    } else {
      fmt::print("{}{}", device == devices.front() ? "" : "\n",
                 text_report(recording->info(), report, options.top));
    }
  }
  if (options.json) {
    const nlohmann::ordered_json json = {{"schema", "vramtrack.fragmentation/1"},
                                         {"path", recording->info().path},
                                         {"simulated", recording->info().simulated},
                                         {"notes", recording->info().notes},
                                         {"devices", std::move(list)}};
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else if (devices.empty()) {
    fmt::print("no caching allocator was seen: nothing can be fragmented\n");
    for (const std::string& note : recording->info().notes) fmt::print("note: {}\n", note);
  }
}

}  // namespace

void add_fragmentation_command(CLI::App& app) {
  auto options = std::make_shared<FragmentationOptions>();
  CLI::App* command = app.add_subcommand(
      "fragmentation", "Reserved memory that nobody uses, what keeps it, and what would help");
  command->add_option("FILE", options->file,
                      "Trace or PyTorch snapshot; the latest trace of this folder if not given");
  command->add_option("--at", options->at, "The moment, as in `vramtrack report`");
  command->add_option("--device", options->device, "Only this device");
  command->add_option("--top", options->top, "How many segments and lines to show")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON (docs/json.md)");
  command->callback([options] { print_fragmentation(*options); });
}

}  // namespace vramtrack
