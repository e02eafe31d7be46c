// The options of `vramtrack run`, as the shim reads them: environment variables, once, when it is
// loaded. docs/options.md lists them.
#ifndef VRAMTRACK_TRACER_RECORD_CONFIG_H
#define VRAMTRACK_TRACER_RECORD_CONFIG_H

#include <cstdint>

namespace vramtrack {

struct Config {
  bool enabled = true;           // VRAMTRACK=off
  bool cpu = false;              // VRAMTRACK_CPU
  bool kernels = true;           // VRAMTRACK_KERNELS=names|on|off: which one follows an allocation
  bool accesses = false;         // ... =on: and what each is given
  bool quiet = false;            // VRAMTRACK_QUIET: no line at the end
  bool native_stacks = true;     // VRAMTRACK_STACKS=both|python|native|none
  bool python_stacks = true;     //
  bool helper = true;            // VRAMTRACK_HELPER=off
  bool simulated = false;        // VRAMTRACK_SIMULATED: `run --simulate` started us
  bool cupti = false;            // VRAMTRACK_CUPTI=on, or the libcupti to use
  bool write_mode = false;       // VRAMTRACK_WRITE_MODE: as on a network file system
  uint32_t sample_seconds = 10;  // VRAMTRACK_SAMPLE_SECONDS: cuMemGetInfo at most this often
  uint64_t ring_bytes = 0;       // VRAMTRACK_RING: keep the last so many bytes of events, 0 all
  uint64_t sample_bytes = 0;     // VRAMTRACK_SAMPLE: one block in so many bytes, 0 all
  uint64_t sample_seed = 0;      // VRAMTRACK_SAMPLE_SEED: which blocks, 0 by chance; for tests
  const char* cupti_library = nullptr;  // of VRAMTRACK_CUPTI, where that is a path
  const char* output = nullptr;         // VRAMTRACK_OUTPUT: folder or file
  const char* preload = nullptr;        // LD_PRELOAD, as the loader saw it
  const char* job_list = nullptr;  // VRAMTRACK_JOB: where `run` learns which files were written
};

const Config& config();
void read_config();  // from the constructor of the library; reads the environment only

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_CONFIG_H
