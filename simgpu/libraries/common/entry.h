// What every stand-in library is made of: how an entry point is exported, and what an entry point
// does that is not simulated. The tables <library>/entry_points.def decide which is which.
//
// The danger: these functions stand in for others by name alone. Their parameters come from the
// public documentation, are declared here without the vendor's headers (one build serves every CUDA
// version), and only those that are read need to be right.
#pragma once

#include <cstddef>
#include <cstdint>

// Written at the start of a line, so that update_entry_points.py finds what is implemented.
#define ENTRY(name) extern "C" __attribute__((visibility("default"))) int name
#define TEXT_ENTRY(name) extern "C" __attribute__((visibility("default"))) const char* name

namespace simgpu {

// Says "not simulated: <name>" on stderr, once per flag.
void say_not_simulated(const char* name, bool* said);

}  // namespace simgpu
