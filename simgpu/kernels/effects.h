// What a launch does to small contents: the few kernels whose results a program reads back to
// decide what it does next (a flag that all sequences ended, a check for infinity, a count) are
// followed element by element, as long as they are small; of all others only the place they write
// to is known, and becomes unknown.
//
// Unknown inputs count as zero, and whatever is computed from them is counted as assumed: no value
// of a kernel is ever claimed to be the device's.
//
// The danger: kernels are recognised by their C++ names and their parameters read by the layout
// that those names imply. A name that is not understood in full is left alone.
#pragma once

namespace simgpu {

// `name` is the kernel's mangled name, `parameters` are the launch's, one pointer each.
void apply_launch_effects(const char* name, void* const* parameters);

}  // namespace simgpu
