// The native frames of the calling thread.
//
// Two implementations: libunwind, opened privately with dlopen so that none of its symbols (it
// exports _Unwind_* of its own) can come between the host and its exceptions; and the call frame
// information of the modules, read and cached per address by ourselves, which is faster and needs
// no library. Each writes return addresses, innermost first.
#ifndef VRAMTRACK_TRACER_STACK_NATIVE_UNWINDER_H
#define VRAMTRACK_TRACER_STACK_NATIVE_UNWINDER_H

#include <cstddef>
#include <cstdint>

namespace vramtrack {

struct NativeFrame {
  uintptr_t pc;   // return address
  uintptr_t cfa;  // where the frame ends on the stack, 0 unknown; grows outwards
};

// libunwind_unwinder.cpp. Opens libunwind; false where there is none. From the constructor only.
bool open_libunwind();
size_t libunwind_backtrace(NativeFrame* frames, size_t max);
void libunwind_flush();  // after a library was closed

// cfi_unwinder.cpp. 0 where it met a frame that it cannot step over: ask libunwind then.
__attribute__((noinline)) size_t cfi_backtrace(NativeFrame* frames, size_t max);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_NATIVE_UNWINDER_H
