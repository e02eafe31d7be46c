// Which nn.Module instances have which names: told by the Python helper, looked up in the frames by
// the address of `self`.
#ifndef VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H
#define VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H

#include <cstdint>
#include <string_view>

namespace vramtrack {

// Told again with each scan, so that an address which was given to another module is soon right.
void name_module(uintptr_t object, std::string_view name);

// There is a helper that will name modules. Without, no ids are given out that nobody defines.
void await_module_names();

// 0 where the address is no known module.
uint32_t module_name(uintptr_t object);

// Of a module that is being called. One that the helper has not met yet gets an id whose text
// follows: which blocks have a name then does not depend on when the helper looks.
uint32_t called_module_name(uintptr_t object);

void python_modules_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_PYTHON_MODULES_H
