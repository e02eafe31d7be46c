// Where an event came from: the native and Python frames of the calling thread, as one id.
//
// capture_stack() is called inside allocation hooks: the GIL is usually not held, PyTorch may hold
// its device mutex, and the loader's lock may belong to somebody who waits for us. So nothing here
// calls malloc, dlsym or Python's C API, and nothing takes a lock.
#ifndef VRAMTRACK_TRACER_STACK_STACK_H
#define VRAMTRACK_TRACER_STACK_STACK_H

#include <cstdint>

namespace vramtrack {

// Once, from the library's constructor: reads VRAMTRACK_STACKS, opens libunwind, looks for Python.
void stacks_initialize();

// The id of the calling thread's stack; 0 where stacks are off or the tables are full. A new stack
// is written as a definition before its id is returned. The caller holds the re-entrancy guard.
uint32_t capture_stack();

// The name (a string id) of the innermost nn.Module whose method ran when this thread last captured
// a stack; 0 where there was none, or where the Python helper did not know it yet.
uint32_t captured_module();

// `listener` is called with each capture: how the Python helper learns that the program allocates.
void on_capture(void (*listener)());

// After the real dlopen / dlclose returned, outside the loader's locks.
void stacks_on_dlopen();
void stacks_on_dlclose();

// In a child, before its first event: the child's file knows no definitions yet.
void stacks_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_STACK_H
