#include "runtime/registry.h"

#include <dlfcn.h>

#include <mutex>
#include <unordered_map>

#include "runtime/call.h"
#include "simgpu.h"

namespace simgpu {

struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
  bool managed_pending = false;
  std::vector<Variable> managed;
  std::vector<const void*> hosts;  // what to forget when it goes
};

namespace {

// What nvcc's code passes to __cudaRegisterFatBinary. The toolkit's fatbinary_section.h describes
// it, which not every package of headers has.
struct Wrapper {
  int magic;
  int version;
  const void* image;
  void* prelinked;
};

struct Function {
  FatBinary* binary;
  const void* host;
  const char* name;
  CUkernel kernel;
};

struct Registry {
  std::mutex guard;
  std::vector<Function> new_functions;  // not in the index yet
  std::unordered_map<const void*, Function> functions;
  std::unordered_map<const void*, Variable> variables;
  std::unordered_map<const void*, const void*> kernels;  // handle to host address, or null
};

Registry& registry() {
  static Registry* const the_registry = new Registry;
  return *the_registry;
}

void index_functions(Registry& all) {
  all.functions.reserve(all.functions.size() + all.new_functions.size());
  for (const Function& function : all.new_functions) {
    all.functions.insert_or_assign(function.host, function);
  }
  all.new_functions.clear();
  all.new_functions.shrink_to_fit();
}

// Images are not read by the simulated driver; the size of a variable is known to its registration
// only. The real driver reads it from the image and has no such function.
void declare_size(CUlibrary library, const Variable& variable) {
  using Declare = decltype(&simgpu_declare_global);
  static const Declare declare = [] {
    void* driver_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver_library == nullptr
               ? nullptr
               : reinterpret_cast<Declare>(dlsym(driver_library, "simgpu_declare_global"));
  }();
  if (declare != nullptr) declare(library, variable.name, variable.size);
}

// Loading is not part of what a thread captures, also where the capture forbids it other calls.
class OutsideCapture {
 public:
  OutsideCapture() { exchange(); }
  ~OutsideCapture() { exchange(); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  void exchange() { call(&DriverTable::ThreadExchangeStreamCaptureMode, &mode_); }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

cudaError_t load(FatBinary* binary) {
  if (binary->library != nullptr) return cudaSuccess;
  const OutsideCapture outside;
  // The image is part of the program and stays: a framework's images are gigabytes, no copy is
  // made.
  CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* yes = reinterpret_cast<void*>(1);
  return call(&DriverTable::LibraryLoadData, &binary->library, binary->image,
              static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), 0u, &option, &yes,
              1u);
}

cudaError_t place_managed(FatBinary* binary) {
  if (!binary->managed_pending) return cudaSuccess;
  const OutsideCapture outside;
  const cudaError_t error = load(binary);
  if (error != cudaSuccess) return error;
  for (const Variable& variable : binary->managed) {
    void* address = nullptr;
    size_t size = 0;
    declare_size(binary->library, variable);
    const cudaError_t found =
        call(&DriverTable::LibraryGetManaged, &address, &size, binary->library, variable.name);
    if (found != cudaSuccess) return found;
    *static_cast<void**>(const_cast<void*>(variable.host)) = address;
  }
  binary->managed_pending = false;
  return cudaSuccess;
}

cudaError_t kernel_of(Registry& all, Function& function) {
  if (function.kernel != nullptr) return cudaSuccess;
  cudaError_t error = load(function.binary);
  if (error == cudaSuccess) error = place_managed(function.binary);
  if (error == cudaSuccess) {
    error = call(&DriverTable::LibraryGetKernel, &function.kernel, function.binary->library,
                 function.name);
  }
  if (error == cudaErrorSymbolNotFound) error = cudaErrorInvalidDeviceFunction;
  if (error == cudaSuccess) all.kernels[function.kernel] = function.host;
  return error;
}

}  // namespace

FatBinary* register_binary(void* wrapper) {
  auto* binary = new FatBinary;
  binary->image = static_cast<const Wrapper*>(wrapper)->image;
  return binary;
}

void register_function(FatBinary* binary, const void* host, const char* name) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  all.new_functions.push_back({binary, host, name, nullptr});
  binary->hosts.push_back(host);
}

void register_variable(const Variable& variable) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  if (variable.managed) {
    variable.binary->managed.push_back(variable);
    variable.binary->managed_pending = true;
  }
  all.variables.insert_or_assign(variable.host, variable);
  variable.binary->hosts.push_back(variable.host);
}

void unregister_binary(FatBinary* binary) {
  Registry& all = registry();
  {
    const std::lock_guard<std::mutex> lock(all.guard);
    index_functions(all);
    for (const void* host : binary->hosts) {
      const auto function = all.functions.find(host);
      if (function != all.functions.end()) {
        all.kernels.erase(function->second.kernel);
        all.functions.erase(function);
      }
      all.variables.erase(host);
    }
  }
  if (binary->library != nullptr) call(&DriverTable::LibraryUnload, binary->library);
  delete binary;
}

cudaError_t prepare_managed(FatBinary* binary) {
  if (!binary->managed_pending) return cudaSuccess;
  const cudaError_t error = enter_context();
  if (error != cudaSuccess) return error;
  const std::lock_guard<std::mutex> lock(registry().guard);
  return place_managed(binary);
}

cudaError_t find_kernel(const void* host, CUkernel* kernel) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  if (!all.new_functions.empty()) index_functions(all);
  const auto found = all.functions.find(host);
  if (found != all.functions.end()) {
    const cudaError_t error = kernel_of(all, found->second);
    *kernel = found->second.kernel;
    return error;
  }
  if (all.kernels.count(host) == 0) return cudaErrorInvalidDeviceFunction;
  *kernel = static_cast<CUkernel>(const_cast<void*>(host));
  return cudaSuccess;
}

void* host_of(CUkernel kernel) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto found = all.kernels.find(kernel);
  const bool has_host = found != all.kernels.end() && found->second != nullptr;
  return has_host ? const_cast<void*>(found->second) : static_cast<void*>(kernel);
}

// A launch passes a kernel where a function is asked for, so that a function may turn out to be
// one.
void* host_of(CUfunction function) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto itself = all.kernels.find(function);
  if (itself != all.kernels.end() && itself->second != nullptr) {
    return const_cast<void*>(itself->second);
  }
  for (const auto& [kernel, host] : all.kernels) {
    CUfunction candidate = nullptr;
    const auto handle = static_cast<CUkernel>(const_cast<void*>(kernel));
    if (call(&DriverTable::KernelGetFunction, &candidate, handle) == cudaSuccess &&
        candidate == function) {
      return const_cast<void*>(host != nullptr ? host : kernel);
    }
  }
  return static_cast<void*>(function);
}

void remember_kernel(CUkernel kernel) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  all.kernels.try_emplace(kernel, nullptr);
}

cudaError_t find_variable(const void* host, void** address, size_t* size) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto found = all.variables.find(host);
  if (found == all.variables.end()) return cudaErrorInvalidSymbol;
  const Variable& variable = found->second;
  cudaError_t error = load(variable.binary);
  if (error == cudaSuccess) error = place_managed(variable.binary);
  if (error != cudaSuccess) return error;
  if (!variable.managed) declare_size(variable.binary->library, variable);
  return call(variable.managed ? &DriverTable::LibraryGetManaged : &DriverTable::LibraryGetGlobal,
              address, size, variable.binary->library, variable.name);
}

}  // namespace simgpu
