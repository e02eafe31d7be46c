// What the helper's Python can call: functions made at run time, so that no extension module has to
// be built for each version of Python (and a call costs tens of nanoseconds, not ctypes' hundreds).
#ifndef VRAMTRACK_TRACER_PYTHON_NATIVES_H
#define VRAMTRACK_TRACER_PYTHON_NATIVES_H

#include "python/api.h"

namespace vramtrack {

// A new dictionary of functions by name; nullptr with a Python error set. With the GIL.
//   mark(name) push(name) pop() step(n) label(pointer, bytes, name)    the annotation API
//   auto_step(n)          step(n), unless the program calls step() itself
//   watch_steps(f)        f() is called after each step(n); what it raises goes to the program
//   metadata(key, value)  a fact about the run
//   name_module(id, name)  of an nn.Module
//   types_of(f)           the distinct types of the objects in the list that f() returns
//   objects_of(f, types)  the objects in it whose exact type is in the list `types`
//   growing(n)            [(address, bytes, stack, age in steps)...] of at most n growing stacks
//   largest(n)            the same of stacks that hold most, before there are steps to see growth
//   by memory()              (allocated, most since reset_peak()) of each device's caching
//   allocator reset_peak() ways(roots, more, later, enter_later, targets, us)   object_graph.h
//   reachable(roots, more, later, types, us)
//   referrers(f, object, excluded, us)
//   variables(frame)
//   holder(address, bytes, stack, text, at_oom)   who holds a block
//   answer(f)             f() answers request()
//   request()
//   holders_source()      more of the helper, run when it is first needed
//   epoch()               changes with each trace file of this process; 0: none is open
PyObject* make_natives(const PythonApi& api);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_NATIVES_H
