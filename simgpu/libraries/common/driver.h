// What the stand-in libraries use of the stand-in driver. All of it is looked up in the global
// scope when a library is loaded (weak references): the driver is preloaded before them, and a
// preloaded tracer is found before the driver, so that it sees their launches as it sees those of
// the real libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

extern "C" {
__attribute__((weak)) int cuLibraryLoadData(void** library, const void* image, void*, void*,
                                            unsigned, void*, void*, unsigned);
__attribute__((weak)) int cuLibraryGetKernel(void** kernel, void* library, const char* name);
__attribute__((weak)) int cuLaunchKernel(void* kernel, unsigned, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, unsigned, void* stream,
                                         void** parameters, void** extra);
__attribute__((weak)) int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from,
                                               std::size_t size, void* stream);
__attribute__((weak)) int cuCtxGetDevice(int* device);
__attribute__((weak)) int cuDeviceGetAttribute(int* value, int attribute, int device);
__attribute__((weak)) int cuMemAlloc_v2(std::uint64_t* address, std::size_t size);
__attribute__((weak)) int cuMemFree_v2(std::uint64_t address);
__attribute__((weak)) int simgpu_open_library(int device, const char* library, std::uint64_t bytes);
__attribute__((weak)) void simgpu_close_library(int device, const char* library,
                                                std::uint64_t bytes);
__attribute__((weak)) void simgpu_forget(std::uint64_t address, std::size_t size);
__attribute__((weak)) void simgpu_assume(const char* operation, std::uint64_t count);
}

namespace simgpu {

// A kernel that stands for those that a library would launch; it computes nothing, but shows up in
// traces, profiles and captured graphs under a name that says what it is, with the addresses of the
// data that it would work on as its parameters. One per call site, which must be static.
class LibraryKernel {
 public:
  static constexpr std::size_t kMostPointers = 64;

  explicit constexpr LibraryKernel(const char* name, std::size_t pointers = 0)
      : name_(name), pointers_(pointers < kMostPointers ? pointers : kMostPointers) {}

  // Nothing happens where the driver is a real one. Of the pointers, as many as the kernel has
  // parameters are passed; those that are missing are null.
  void launch(void* stream, const void* const* pointers = nullptr, std::size_t count = 0);
  void launch(void* stream, std::initializer_list<const void*> pointers) {
    launch(stream, pointers.begin(), pointers.size());
  }

 private:
  void* find();

  const char* name_;
  std::size_t pointers_;
  void* kernel_ = nullptr;
};

// The ordinal of the current context's device; 0 where there is none.
inline int current_device() {
  int device = 0;
  return cuCtxGetDevice && cuCtxGetDevice(&device) == 0 ? device : 0;
}

// What a handle of the library takes of the device, by estimate. False: it does not fit.
inline bool open_library(int device, const char* library, std::uint64_t bytes = 0) {
  return !simgpu_open_library || simgpu_open_library(device, library, bytes) == 0;
}
inline void close_library(int device, const char* library, std::uint64_t bytes = 0) {
  if (simgpu_close_library) simgpu_close_library(device, library, bytes);
}

inline void forget(const void* address, std::size_t size) {
  if (simgpu_forget) simgpu_forget(reinterpret_cast<std::uint64_t>(address), size);
}

}  // namespace simgpu
