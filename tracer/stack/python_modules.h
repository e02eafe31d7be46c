// Which nn.Module instances have which names: told by the Python helper, looked up in the frames by
// the address of `self`.
#ifndef VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H
#define VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H

#include <cstdint>

namespace vramtrack {

// `name` is a string id of the trace, 0 forgets. Told again with each scan, so that an address
// which was given to another module is soon right.
void name_module(uintptr_t object, uint32_t name);

// 0 where the address is no known module.
uint32_t module_name(uintptr_t object);

void python_modules_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H
