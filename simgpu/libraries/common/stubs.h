// Turns a table of entry points into functions: include after defining SIMGPU_NOT_SUPPORTED, the
// status that the library documents for what it cannot do, then include the table.
//
// A function may ignore parameters that it was called with (the caller cleans up on x86-64), so one
// parameterless definition serves every signature whose result is a status.
#pragma once

#include "common/entry.h"

#define SIMGPU_DEFINE(name) extern "C" __attribute__((visibility("default"))) int name()

#define IMPLEMENTED(name)
#define STUB(name)                           \
  SIMGPU_DEFINE(name) {                      \
    static bool said;                        \
    simgpu::say_not_simulated(#name, &said); \
    return SIMGPU_NOT_SUPPORTED;             \
  }
