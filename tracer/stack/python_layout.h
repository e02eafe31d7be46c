// Where CPython keeps its frames: offsets into its structures, per version.
//
// 3.9 to 3.12 from a table (tests/stack compares the frames with each version's own); from 3.13 on
// the interpreter publishes the offsets itself (_Py_DebugOffsets at the start of _PyRuntime).
#ifndef VRAMTRACK_TRACER_STACK_PYTHON_LAYOUT_H
#define VRAMTRACK_TRACER_STACK_PYTHON_LAYOUT_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

struct PythonLayout {
  uint16_t minor = 0;

  // Thread state. Up to 3.12 the innermost frame hangs on a _PyCFrame (from 3.10 on), which lies on
  // the C stack inside the native frame of the interpreter loop that it belongs to.
  uint16_t thread_frame = 0;   // 3.9, 3.10, 3.13+: the innermost frame
  uint16_t thread_cframe = 0;  // 3.10 - 3.12
  uint16_t cframe_frame = 0;   // 3.11, 3.12
  uint16_t cframe_previous = 0;

  // Frame.
  uint16_t frame_previous = 0;
  uint16_t frame_code = 0;
  uint16_t frame_instruction = 0;  // 3.9, 3.10: int index; else pointer to the instruction
  uint16_t frame_owner = 0;        // 3.12+: 3 and above are entries of the interpreter loop
  uint16_t frame_is_entry = 0;     // 3.11
  uint16_t frame_locals = 0;       // the first local variable: `self` in a method

  // Code object.
  uint16_t code_file = 0;
  uint16_t code_name = 0;  // qualified from 3.11 on
  uint16_t code_first_line = 0;
  uint16_t code_line_table = 0;
  uint16_t code_instructions = 0;  // 3.11+

  // Text: header of an ASCII string, of any other compact one.
  uint16_t ascii_header = 0;
  uint16_t compact_header = 0;
};

inline constexpr size_t kObjectType = 8;  // ob_type; builds without a GIL differ and are refused
inline constexpr size_t kTypeDealloc = 48;
inline constexpr size_t kTextLength = 16;
inline constexpr size_t kTextState = 32;
inline constexpr size_t kBytesSize = 16;
inline constexpr size_t kBytesData = 32;

// The layout of `3.minor`; `runtime` is _PyRuntime, needed from 3.13 on. False where the version is
// unknown, has no GIL, or publishes what makes no sense.
bool find_python_layout(unsigned minor, const void* runtime, PythonLayout& layout);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_PYTHON_LAYOUT_H
