#include "commands/blocks_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "commands/latest_recording.h"
#include "import/open.h"
#include "report/block_list.h"

namespace vramtrack {

void add_blocks_command(CLI::App& app) {
  struct Arguments {
    std::string file;
    BlockListOptions list;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("blocks", "Every live block at a moment, one by one");
  command->add_option("FILE", arguments->file,
                      "Trace or PyTorch snapshot; the latest trace of this folder if not given");
  command->add_option("--at", arguments->list.at, "The moment, as in `vramtrack report`");
  command->add_option("--category", arguments->list.category, "Only this category or row");
  command->add_option("--device", arguments->list.device, "Only this device; -1: CPU tensors");
  command->add_option("--top", arguments->list.top, "How many of the largest to show as text")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print all of them as JSON (docs/json.md)");
  command->callback([arguments] {
    const auto recording = open_recording(recording_or_latest(arguments->file));
    (arguments->json ? write_blocks_json : write_blocks_text)(*recording, arguments->list, stdout);
  });
}

}  // namespace vramtrack
