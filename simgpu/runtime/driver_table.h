// The way from the runtime to the driver: libcuda.so.1 is opened, one symbol is looked up in it
// (cuGetProcAddress_v2), and every other function is asked of that one, by un-suffixed name, API
// version and flags. This is how the vendor's runtime reaches its driver, so that whoever watches
// the driver level of a program meets the same path here as on a real machine.
//
// The danger: a second way in (a further dlsym, a direct call into our own driver) would be
// invisible to a tracer on a real machine and must not exist here.
#pragma once

#include "runtime/headers.h"

namespace simgpu {

struct DriverTable {
#define DRIVER(name, version) PFN_cu##name##_v##version name = nullptr;
#define STREAM(name, version, thread_version)
#include "runtime/driver_functions.def"
#undef DRIVER
#undef STREAM
};

// Functions that work on a stream exist twice: once with the legacy meaning of stream 0, once with
// the calling thread's own default stream. Both have the same type.
struct StreamTable {
#define DRIVER(name, version)
#define STREAM(name, version, thread_version) PFN_cu##name##_v##version name = nullptr;
#include "runtime/driver_functions.def"
#undef DRIVER
#undef STREAM
};

struct Driver {
  cudaError_t status = cudaErrorInsufficientDriver;  // of opening the driver and cuInit
  PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;
  DriverTable plain;
  StreamTable legacy;
  StreamTable per_thread;
};

// The driver, opened at the first call that needs it. Never fails: `status` says what is missing.
const Driver& driver();

// The name of the member at this offset of a table, for messages.
const char* driver_function_name(const DriverTable& table, const void* member);
const char* driver_function_name(const StreamTable& table, const void* member);

}  // namespace simgpu
