#include "record/config.h"

#include <cstdlib>
#include <cstring>

namespace vramtrack {
namespace {

constinit Config g_config;

bool is_off(const char* value) {
  return std::strcmp(value, "off") == 0 || std::strcmp(value, "0") == 0 ||
         std::strcmp(value, "no") == 0 || std::strcmp(value, "none") == 0;
}

// An unset or empty variable leaves the default.
const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void read_switch(const char* name, bool& option) {
  if (const char* value = variable(name)) option = !is_off(value);
}

}  // namespace

const Config& config() {
  return g_config;
}

void read_config() {
  Config& c = g_config;
  read_switch("VRAMTRACK", c.enabled);
  read_switch("VRAMTRACK_CPU", c.cpu);
  if (const char* kernels = variable("VRAMTRACK_KERNELS")) {
    c.kernels = !is_off(kernels);
    c.accesses = c.kernels && std::strcmp(kernels, "names") != 0;
  }
  read_switch("VRAMTRACK_QUIET", c.quiet);
  read_switch("VRAMTRACK_HELPER", c.helper);
  read_switch("VRAMTRACK_SIMULATED", c.simulated);
  read_switch("VRAMTRACK_WRITE_MODE", c.write_mode);
  if (const char* stacks = variable("VRAMTRACK_STACKS")) {
    const bool none = is_off(stacks);
    c.native_stacks = !none && std::strcmp(stacks, "python") != 0;
    c.python_stacks = !none && std::strcmp(stacks, "native") != 0;
  }
  if (const char* seconds = variable("VRAMTRACK_SAMPLE_SECONDS"))
    c.sample_seconds = static_cast<uint32_t>(std::strtoul(seconds, nullptr, 10));
  c.preload = variable("LD_PRELOAD");
  c.output = variable("VRAMTRACK_OUTPUT");
  c.job_list = variable("VRAMTRACK_JOB");
}

}  // namespace vramtrack
