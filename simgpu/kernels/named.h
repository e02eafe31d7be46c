// Single kernels that are followed by their full name.
#pragma once

#include <string_view>

namespace simgpu {

using NamedKernel = void (*)(void* const* parameters);

// nullptr where there is none for the demangled name.
NamedKernel find_named_kernel(std::string_view text);

}  // namespace simgpu
