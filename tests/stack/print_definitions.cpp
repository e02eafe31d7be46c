// print_definitions <records> [--symbols]: reads a file of definition records as capture_library
// saves it, with the analyzer's own reader and resolver, and prints each stack as JSON. What the
// Python tests compare with what Python itself says.
#include <vramtrack/trace_codec.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "symbols/resolver.h"
#include "symbols/symbolizer.h"
#include "trace/definition_reader.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

  vramtrack::Definitions definitions;
  vramtrack::DefinitionReader reader(definitions);
  vramtrack::Reader in(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  while (in.left() > 0) {
    const auto kind = static_cast<vramtrack::EventKind>(in.byte());
    if (!reader.read(kind, in)) {
      std::fprintf(stderr, "bad record of kind %d\n", static_cast<int>(kind));
      return 1;
    }
  }
  vramtrack::RecordingInfo info;
  vramtrack::RawDefinitions raw = reader.finish(info);
  if (argc > 2) raw.symbols = vramtrack::symbolize(raw).symbols.to_json();

  std::vector<std::string> notes;
  const auto resolver = vramtrack::make_frame_resolver(raw, notes);
  nlohmann::json stacks = nlohmann::json::object();
  for (const vramtrack::RawStack& stack : raw.stacks) {
    nlohmann::json frames = nlohmann::json::array();
    for (const vramtrack::RawFrame& frame : stack.frames)
      for (const vramtrack::Frame& named : resolver->resolve(stack.id, frame))
        frames.push_back({{"function", named.function},
                          {"file", named.file},
                          {"line", named.line},
                          {"python", named.python},
                          {"module", named.module},
                          {"pc", frame.python ? 0 : frame.value}});
    stacks[std::to_string(stack.id)] = std::move(frames);
  }
  std::cout
      << nlohmann::json{{"stacks", stacks}, {"notes", notes}, {"codes", raw.codes.size()}}.dump()
      << "\n";
  return 0;
}
