// The Python frames of the calling thread, read straight from the interpreter's structures.
//
// That needs no GIL: a thread that is inside C code pins its own chain of frames and their code
// objects. Calling the C API instead would corrupt reference counts or deadlock, because PyTorch
// drops the GIL before it allocates.
#ifndef VRAMTRACK_TRACER_STACK_PYTHON_FRAMES_H
#define VRAMTRACK_TRACER_STACK_PYTHON_FRAMES_H

#include <cstddef>
#include <cstdint>

#include "stack/python_layout.h"

namespace vramtrack {

// A frame, or the end of the frames that one native call of the interpreter loop runs.
struct PythonEntry {
  uintptr_t value;  // frame: the id of its code object; boundary: an address in the loop's native
                    // frame, 0 where the version has none
  int32_t offset;   // frame: byte offset of the instruction that runs
  bool boundary;
};

// The interpreter of this process. Found once; null functions until then.
struct Python {
  PythonLayout layout;
  void* (*thread_state)();  // PyGILState_GetThisThreadState
  uintptr_t code_type;      // &PyCode_Type
  uintptr_t loop_begin;     // _PyEval_EvalFrameDefault
  uintptr_t loop_end;
};

// Looks for an interpreter among the mapped modules. Not inside a hook.
void find_python();

// nullptr while there is none whose frames can be read.
const Python* python();

struct PythonWalk {
  size_t count = 0;
  bool cut = false;     // there were more than fit
  uint32_t module = 0;  // of the innermost nn.Module whose method runs: its name (python_modules.h)
};

// Innermost first, at most `max` entries.
PythonWalk walk_python(const Python& python, PythonEntry* entries, size_t max);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_PYTHON_FRAMES_H
