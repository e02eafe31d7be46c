// Modules, libraries and what is looked up in them. A library is a module that belongs to no
// context; its kernels become functions of whichever context launches them.
#ifndef SIMGPU_DRIVER_MODULE_H
#define SIMGPU_DRIVER_MODULE_H

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cubin.h"
#include "driver.h"
#include "fatbin.h"

namespace simgpu {

struct Function;

struct Module {
  bool is_library = false;
  Context* context = nullptr;  // of a module
  std::mutex mutex;
  ImageInfo image;
  std::optional<FatBinary> fat_binary;
  // Of kernels in a fat binary, as far as it was read.
  std::map<std::string, std::vector<KernelParameter>, std::less<>> parameters;
  std::map<std::string, Function*, std::less<>> functions;
  std::map<std::string, std::uint64_t, std::less<>> declared_sizes;  // simgpu_declare_global
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
  };
  std::map<std::pair<Context*, std::string>, Variable> variables;
  std::map<Context*, Module*> per_context;  // cuLibraryGetModule
  Module* library = nullptr;                // of a module that a library made
};

// A CUfunction or a CUkernel: both can be launched.
struct Function {
  Module* module = nullptr;
  std::string name;
  const KernelInfo* info = nullptr;  // nullptr: unknown
  bool is_kernel = false;
  Function* kernel = nullptr;  // a function's kernel, if it came from a library
  std::atomic<int> max_dynamic_shared{-1};
  std::atomic<int> preferred_carveout{-1};
  std::atomic<int> cluster[3] = {0, 0, 0};
  std::mutex mutex;
  std::map<Context*, Function*> per_context;  // a kernel's functions
};

// nullptr where they are not known. A fat binary is read at the first question.
const std::vector<KernelParameter>* parameters_of(const Function* function);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_MODULE_H
