// The table of entry points by the name that cuGetProcAddress is asked for.
#ifndef SIMGPU_DRIVER_PROC_ADDRESS_H
#define SIMGPU_DRIVER_PROC_ADDRESS_H

#include <string_view>

namespace simgpu {

struct EntryPoint {
  std::string_view exported;  // as dlsym finds it
  std::string_view name;      // as cuGetProcAddress is asked for it
  int version;                // of CUDA, in which it came
  bool per_thread;            // works on the per-thread default stream
  void (*address)();
};

struct EntryPoints {
  const EntryPoint* begin;
  const EntryPoint* end;
};
EntryPoints entry_points();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_PROC_ADDRESS_H
