// victim_tour SUBJECT...: a CUDA program that does what it is told, and says what it did
// (witness.h). `victim_tour all` goes through every subject that leaves the device as it found it,
// and leaks at the end.
#include <cstdio>
#include <cstring>

#include "subjects.h"
#include "witness.h"

namespace {

// In the order of `all`. The last of them are left out of it: they break something on purpose.
constexpr victims::Subject subjects[] = {
    {"device-memory", victims::device_memory},
    {"nested-frames", victims::nested_frames},
    {"several-threads", victims::several_threads},
    {"several-streams", victims::several_streams},
    {"async-pools", victims::async_pools},
    {"virtual-memory", victims::virtual_memory},
    {"second-mapping", victims::second_mapping},
    {"imported-handle", victims::imported_handle},
    {"managed-memory", victims::managed_memory},
    {"pinned-memory", victims::pinned_memory},
    {"arrays", victims::arrays},
    {"graph-memory", victims::graph_memory},
    {"graph-nodes", victims::graph_nodes},
    {"queries", victims::queries},
    {"values", victims::values},
#ifdef VICTIM_WITH_KERNELS
    {"kernels", victims::kernels},
    {"kernel-threads", victims::kernel_threads},
    {"device-variables", victims::device_variables},
    {"captured-graph", victims::captured_graph},
    {"exception", victims::exception_through_nvcc_code},
#endif
    {"failing-request", victims::failing_request},
    {"leak", victims::leak},
    {nullptr, nullptr},
    {"misuse", victims::misuse},
    {"errors-per-thread", victims::errors_per_thread},
    {"null-arguments", victims::null_arguments},
    {"shared-between-processes", victims::shared_between_processes},
    {"two-devices", victims::two_devices},
    {"device-reset", victims::device_reset},
};

bool run(const char* name) {
  const bool all = std::strcmp(name, "all") == 0;
  bool found = false;
  for (const victims::Subject& subject : subjects) {
    if (subject.name == nullptr) {
      if (all) break;
      continue;
    }
    if (all || std::strcmp(name, subject.name) == 0) {
      subject.run();
      victims::say_raw("end", "\"subject\":\"" + std::string(subject.name) + "\"");
      found = true;
    }
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s all|SUBJECT...\n", argv[0]);
    for (const victims::Subject& subject : subjects) {
      if (subject.name != nullptr) std::fprintf(stderr, "  %s\n", subject.name);
    }
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    if (!run(argv[i])) {
      std::fprintf(stderr, "victim: no subject is called %s\n", argv[i]);
      return 2;
    }
  }
  return 0;
}
