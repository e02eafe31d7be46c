// Which line of the user's own code a stack belongs to.
#ifndef VRAMTRACK_ANALYZER_ATTRIBUTION_CALL_SITE_H
#define VRAMTRACK_ANALYZER_ATTRIBUTION_CALL_SITE_H

#include <optional>
#include <string>
#include <string_view>

#include "trace/recording.h"

namespace vramtrack {

// Whether a frame is code of the user: Python outside the standard library and installed packages,
// native code outside the system's, CUDA's and PyTorch's libraries.
bool is_user_frame(const Frame& frame);

// Index in the stack (innermost first) of the innermost frame of the user, nullopt where all
// frames belong to libraries or there is no stack.
std::optional<size_t> user_frame(const Definitions& definitions, StackId stack);

// "train.py:42 forward"; for people. A stack without a user's frame gives its innermost frame that
// has a name; "(no stack)" where there is none.
std::string call_site(const Definitions& definitions, StackId stack);
std::string describe(const Frame& frame);

// By file name: "libcudart.so.13", "libc.so.6".
std::string file_name(std::string_view path);
bool is_cuda_library(std::string_view name);
bool is_system_library(std::string_view name);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_ATTRIBUTION_CALL_SITE_H
