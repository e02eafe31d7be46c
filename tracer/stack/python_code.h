// Ids of Python code objects, and their definitions in the trace.
//
// A code object is known by its address, which the interpreter gives to another one as soon as it
// is freed (exec in a loop does so all the time). Hence the watch: PyCode_Type's tp_dealloc is
// wrapped, and a freed code object loses its id before its address can return.
#ifndef VRAMTRACK_TRACER_STACK_PYTHON_CODE_H
#define VRAMTRACK_TRACER_STACK_PYTHON_CODE_H

#include <cstdint>

namespace vramtrack {

struct Python;

void watch_code_objects(const Python& python);

struct CodeId {
  uint32_t id;        // 0 where the table is full
  bool is_method;     // its first local variable is `self`, as far as its name tells
  bool calls_module;  // and that `self` is an nn.Module, which is being called
};

// Of a code object that the calling thread is running; its definition is written first where it is
// new.
CodeId code_id(const Python& python, uintptr_t code);

void code_objects_after_fork_child();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_PYTHON_CODE_H
