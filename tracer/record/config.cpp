#include "record/config.h"

#include <cstdlib>
#include <cstring>

#include "record/ring.h"

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

// "64K", "512M", "2GiB", "1000000".
uint64_t read_size(const char* name) {
  const char* value = variable(name);
  if (value == nullptr || is_off(value)) return 0;
  char* unit = nullptr;
  const double number = std::strtod(value, &unit);
  while (*unit == ' ') ++unit;
  const char letter = static_cast<char>(*unit | 0x20);
  const unsigned shift = letter == 'k' ? 10 : letter == 'm' ? 20 : letter == 'g' ? 30 : 0;
  if (!(number > 0) || number > 1e12) return 0;
  return static_cast<uint64_t>(number * static_cast<double>(uint64_t{1} << shift));
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
  read_switch("VRAMTRACK_CUPTI", c.cupti);
  if (c.cupti && std::strchr(variable("VRAMTRACK_CUPTI"), '/') != nullptr)
    c.cupti_library = variable("VRAMTRACK_CUPTI");
  if (const char* seconds = variable("VRAMTRACK_SAMPLE_SECONDS"))
    c.sample_seconds = static_cast<uint32_t>(std::strtoul(seconds, nullptr, 10));
  c.ring_bytes = read_size("VRAMTRACK_RING");
  if (c.ring_bytes != 0 && c.ring_bytes < kLeastRingBytes) c.ring_bytes = kLeastRingBytes;
  c.sample_bytes = read_size("VRAMTRACK_SAMPLE");
  if (const char* seed = variable("VRAMTRACK_SAMPLE_SEED"))
    c.sample_seed = std::strtoull(seed, nullptr, 10);
  c.preload = variable("LD_PRELOAD");
  c.output = variable("VRAMTRACK_OUTPUT");
  c.job_list = variable("VRAMTRACK_JOB");
}

}  // namespace vramtrack
