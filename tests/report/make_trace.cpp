// Writes the golden trace, for tests that run the commands: make_trace PATH [oom|killed|dropped].
#include <filesystem>
#include <fstream>
#include <string>

#include "golden.h"

int main(int argc, char** argv) {
  using namespace vramtrack::test;
  if (argc < 2) return 1;
  const std::string kind = argc > 2 ? argv[2] : "";
  const std::vector<uint8_t> bytes = golden_trace(
      {.finished = kind != "killed", .dropped_events = kind == "dropped" ? 12345U : 0U},
      kind == "oom");
  std::ofstream(argv[1], std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return 0;
}
