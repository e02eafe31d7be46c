#include "attribution/call_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace vramtrack {
namespace {

constexpr size_t kLongestFunction = 60;

bool starts_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool contains_any(std::string_view path, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [path](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  });
}

constexpr std::array<std::string_view, 15> kCudaLibraries = {
    "libcuda.so",   "libcudart", "libcudadevrt", "libcublas",    "libcudnn",
    "libcufft",     "libcurand", "libcusolver",  "libcusparse",  "libnvrtc",
    "libnvJitLink", "libcupti",  "libnvidia-",   "libvramtrack", "libsimgpu"};

constexpr std::array<std::string_view, 12> kSystemLibraries = {
    "libc.so",  "libc-",     "libm.so",  "libpthread", "libdl.so",     "ld-linux",
    "librt.so", "libstdc++", "libgcc_s", "libgomp",    "libunwind.so", "linux-vdso"};

constexpr std::array<std::string_view, 8> kFrameworkLibraries = {
    "libtorch", "libc10", "libnccl", "libpython", "libtriton", "libaoti", "libgloo", "_C."};

// Where installed packages and the standard library lie. Matching parts of paths keeps this right
// for virtual environments and for traces from other machines.
constexpr std::array<std::string_view, 7> kLibraryPaths = {
    "/site-packages/", "/dist-packages/", "/lib/python3", "/torch/",
    "/transformers/",  "/accelerate/",    "/peft/"};

// Frames that only say that memory was allocated.
bool is_allocator(const Frame& frame) {
  constexpr std::array<std::string_view, 5> kAllocators = {"torch::unwind", "CUDACachingAllocator",
                                                           "CachingAllocator", "c10::StorageImpl",
                                                           "torch::CapturedTraceback"};
  return contains_any(frame.function, kAllocators) || is_cuda_library(file_name(frame.module));
}

// "SoftmaxBackward0" out of "torch::autograd::generated::SoftmaxBackward0::apply(...)"; empty where
// the function belongs to no node of autograd.
std::string_view backward_node(std::string_view function) {
  constexpr std::string_view kMark = "Backward";
  const size_t mark = function.find(kMark);
  if (mark == std::string_view::npos) return {};
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  size_t begin = mark;
  while (begin > 0 && is_name(function[begin - 1])) --begin;
  size_t end = mark + kMark.size();
  while (end < function.size() && is_name(function[end])) ++end;
  return function.substr(begin, end - begin);
}

// Where no frame is the user's, as on the threads that run the backward pass: the innermost Python
// frame, the node of autograd, or the innermost function that has a name.
std::string library_site(const Definitions& definitions, std::span<const FrameId> frames) {
  const Frame* named = nullptr;
  std::string_view node;
  for (const FrameId id : frames) {
    const Frame& frame = definitions.frame(id);
    if (frame.python && !frame.file.starts_with('<')) return describe(frame);
    if (node.empty()) node = backward_node(frame.function);
    if (named == nullptr && !frame.function.starts_with("??") && !is_allocator(frame)) {
      named = &frame;
    }
  }
  if (!node.empty()) return fmt::format("{} (backward pass)", node);
  return describe(named != nullptr ? *named : definitions.frame(frames.front()));
}

bool is_python_interpreter(std::string_view name) {
  return name.starts_with("python");
}

}  // namespace

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

bool is_cuda_library(std::string_view name) {
  return starts_with_any(name, kCudaLibraries);
}
bool is_system_library(std::string_view name) {
  return starts_with_any(name, kSystemLibraries);
}

bool is_user_frame(const Frame& frame) {
  if (frame.python) {
    if (frame.file.empty() || frame.file.starts_with('<')) return false;  // "<frozen importlib>"
    return !contains_any(frame.file, kLibraryPaths);
  }
  if (frame.module.empty() || frame.function == "??") return false;
  const std::string name = file_name(frame.module);
  if (is_cuda_library(name) || is_system_library(name) || is_python_interpreter(name) ||
      starts_with_any(name, kFrameworkLibraries)) {
    return false;
  }
  // Start-up code that the compiler puts into every program.
  if (frame.function == "_start" || frame.function == "__libc_start_main") return false;
  return !contains_any(frame.module, kLibraryPaths);
}

std::optional<size_t> user_frame(const Definitions& definitions, StackId stack) {
  const std::span<const FrameId> frames = definitions.stack(stack);
  for (size_t i = 0; i < frames.size(); ++i) {
    if (is_user_frame(definitions.frame(frames[i]))) return i;
  }
  return std::nullopt;
}

std::string describe(const Frame& frame) {
  std::string function = frame.function;
  if (function.size() > kLongestFunction) {
    function = function.substr(0, kLongestFunction - 3) + "...";
  }
  if (frame.file.empty()) return function;
  const std::string file = file_name(frame.file);
  if (frame.line == 0) return fmt::format("{} ({})", function, file);
  return fmt::format("{}:{} {}", file, frame.line, function);
}

std::string call_site(const Definitions& definitions, StackId stack) {
  const std::span<const FrameId> frames = definitions.stack(stack);
  if (frames.empty()) return "(no stack)";
  if (const auto index = user_frame(definitions, stack)) {
    return describe(definitions.frame(frames[*index]));
  }
  return library_site(definitions, frames);
}

}  // namespace vramtrack
