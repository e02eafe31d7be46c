// dump_trace FILE: each event of a trace as a line of JSON, for tests in Python that compare it
// with what a program said of itself.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace {

using nlohmann::json;
using namespace vramtrack;

void print(const json& line) {
  fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void print_event(const Recording& trace, const Event& e) {
  const auto text = [&](StringId id) { return std::string(trace.definitions().string(id)); };
  json accesses = json::array();
  const KernelAccess* access =
      e.kind == EventKind::kernel_access ? trace.definitions().access(e.extra) : nullptr;
  json words = json::array();
  if (access != nullptr) accesses = access->addresses;
  if (access != nullptr) words = access->words;
  print({{"accesses", accesses},
         {"words", words},
         {"kind", static_cast<int>(e.kind)},
         {"memory", static_cast<int>(e.memory)},
         {"device", e.device},
         {"thread", e.thread},
         {"sequence", e.sequence},
         {"time_ns", e.time_ns},
         {"stream", e.stream},
         {"address", e.address},
         {"size", e.size},
         {"requested", e.requested},
         {"object", e.object},
         {"extra", e.extra},
         {"witness_allocated", e.witness_allocated},
         {"witness_reserved", e.witness_reserved},
         {"stack", e.stack},
         {"text", text(e.text)},
         {"api", text(e.api)},
         {"result", e.result},
         {"flags", e.flags}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto trace = open_trace(argv[1]);
    const RecordingInfo& info = trace->info();
    json metadata = json::object();
    for (const auto& [key, value] : info.metadata) metadata[key] = value;
    print({{"info", true},
           {"finished", info.finished},
           {"dropped", info.dropped_events},
           {"simulated", info.simulated},
           {"command", info.command},
           {"metadata", metadata}});
    trace->for_each([&](const Event& event) {
      print_event(*trace, event);
      return true;
    });
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
