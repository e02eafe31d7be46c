// The helper: a few hundred lines of Python that run inside traced Python processes and say what
// only Python knows - which tensors are parameters, gradients and optimizer state, and where steps
// begin. VRAMTRACK_HELPER=off turns it off.
//
// How it gets in: an audit hook, which sees `import vramtrack` and puts the annotation module there
// at that moment, and calls that Python itself makes in its main thread soon after it was asked to
// (Py_AddPendingCall), with the GIL held. It hooks no module, patches nothing and imports no torch;
// in a process that never reaches a GPU not even its source is compiled.
#ifndef VRAMTRACK_TRACER_PYTHON_HELPER_H
#define VRAMTRACK_TRACER_PYTHON_HELPER_H

namespace vramtrack {

// From the constructor, and after each dlopen: an interpreter may arrive late. Not inside a hook.
// Call it after stacks_initialize() and stacks_on_dlopen(), which list the modules.
void python_helper_start_if_possible();

// In a forked child, before its first event.
void python_helper_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_HELPER_H
