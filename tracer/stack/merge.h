// One stack out of two: where the native walk passes the interpreter loop, the Python frames that
// the loop was running take its place.
#ifndef VRAMTRACK_TRACER_STACK_MERGE_H
#define VRAMTRACK_TRACER_STACK_MERGE_H

#include <cstddef>
#include <cstdint>

#include "stack/native_unwinder.h"
#include "stack/python_frames.h"

namespace vramtrack {

struct MergedFrame {
  uint64_t value;  // native: return address, 0 where deeper frames were cut; Python: id of the code
  uint32_t offset;  // Python: byte offset of the instruction
  bool python;
};

struct LoopRange {
  uintptr_t begin;
  uintptr_t end;
};

// Innermost first, at most `max` frames; `cut` tells that there were more.
size_t merge_frames(const NativeFrame* native, size_t native_count, const PythonEntry* python,
                    size_t python_count, LoopRange loop, MergedFrame* out, size_t max, bool& cut);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_MERGE_H
