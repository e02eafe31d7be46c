// Loading and looking up. Nothing is copied to the device: code size is part of no total.
#include "module.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "memory.h"
#include "tables.h"

namespace simgpu {
namespace {

CUresult read_image(const void* image, Module* module) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (image_kind(image)) {
    case ImageKind::kElf:
      module->image = read_elf(image);
      if (!module->image.readable) return CUDA_ERROR_INVALID_IMAGE;
      break;
    case ImageKind::kPtx:
      module->image = read_ptx(static_cast<const char*>(image));
      break;
    case ImageKind::kFatBinary:
      module->fat_binary.emplace(image);
      break;
    case ImageKind::kInvalid:
      return CUDA_ERROR_INVALID_IMAGE;
  }
  return CUDA_SUCCESS;
}

CUresult new_module(Module*& module, const void* image, Context* context, bool library) {
  module = driver().tables->modules.create();
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module->is_library = library;
  module->context = context;
  CUresult result = read_image(image, module);
  if (result != CUDA_SUCCESS) driver().tables->modules.destroy(module);
  return result;
}

// A file's bytes, with a zero behind them: PTX is text.
CUresult read_file(const char* path, std::vector<char>& bytes) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  struct stat status;
  CUresult result = CUDA_ERROR_INVALID_IMAGE;
  if (fstat(file, &status) == 0 && status.st_size >= 64 && status.st_size < (1L << 31)) {
    bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
    if (read(file, bytes.data(), bytes.size() - 1) == status.st_size) result = CUDA_SUCCESS;
  }
  close(file);
  return result;
}

void destroy_module(Module* module) {
  for (auto& [key, variable] : module->variables)
    if (auto found = registry().remove(variable.address, [](const Allocation& known) {
          return known.source == Source::kModule || known.source == Source::kManaged;
        }))
      release(*found, "module unload");
  for (auto& [name, function] : module->functions) {
    for (auto& [context, own] : function->per_context) driver().tables->functions.destroy(own);
    driver().tables->functions.destroy(function);
  }
  for (auto& [context, own] : module->per_context) destroy_module(own);
  driver().tables->modules.destroy(module);
}

// Finds or makes the function; CUDA_ERROR_NOT_FOUND where the image is readable and lacks it.
CUresult look_up(Module* module, const char* name, Function*& function) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(module->mutex);
  if (auto known = module->functions.find(std::string_view(name));
      known != module->functions.end()) {
    function = known->second;
    return CUDA_SUCCESS;
  }
  const KernelInfo* info = nullptr;
  const ImageInfo& image = module->library != nullptr ? module->library->image : module->image;
  if (image.readable) {
    auto found = image.kernels.find(std::string_view(name));
    if (found == image.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    info = &found->second;
  }
  function = driver().tables->functions.create();
  if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  function->module = module;
  function->name = name;
  function->info = info;
  function->is_kernel = module->is_library;
  module->functions.emplace(function->name, function);
  return CUDA_SUCCESS;
}

CUresult variable(Module* module, Context* context, const char* name, Source source,
                  CUdeviceptr* pointer, size_t* bytes) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(module->mutex);
  auto key = std::make_pair(context, std::string(name));
  auto known = module->variables.find(key);
  if (known == module->variables.end()) {
    const Module* described = module->library != nullptr ? module->library : module;
    std::uint64_t size = 0;
    if (auto declared = described->declared_sizes.find(name);
        declared != described->declared_sizes.end())
      size = declared->second;
    else if (auto found = described->image.variables.find(std::string_view(name));
             found != described->image.variables.end())
      size = found->second.size;
    if (size == 0) return CUDA_ERROR_NOT_FOUND;
    std::uint64_t address;
    if (source == Source::kManaged)
      SIMGPU_TRY(
          allocate_managed(reinterpret_cast<CUdeviceptr*>(&address), size, CU_MEM_ATTACH_GLOBAL));
    else
      SIMGPU_TRY(allocate_device(context, size, Kind::kModule, source, "module variable", address));
    known = module->variables.emplace(key, Module::Variable{address, size}).first;
  }
  if (pointer != nullptr) *pointer = known->second.address;
  if (bytes != nullptr) *bytes = known->second.size;
  return CUDA_SUCCESS;
}

CUresult find_module(CUmodule handle, Module*& module) {
  SIMGPU_TRY(require_init());
  module = driver().tables->modules.find(handle);
  return module == nullptr || module->is_library ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult find_library(CUlibrary handle, Module*& module) {
  SIMGPU_TRY(require_init());
  module = driver().tables->modules.find(reinterpret_cast<CUmodule>(handle));
  return module == nullptr || !module->is_library ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUmodule handle_of(Module* module) {
  return driver().tables->modules.handle(module);
}
CUfunction handle_of(Function* function) {
  return driver().tables->functions.handle(function);
}

template <class Handle>
CUresult enumerate(Module* module, Handle* out, unsigned count) {
  if (!module->image.readable) return CUDA_ERROR_NOT_SUPPORTED;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned i = 0;
  for (const auto& [name, info] : module->image.kernels) {
    if (i == count) break;
    Function* function;
    SIMGPU_TRY(look_up(module, name.c_str(), function));
    out[i++] = reinterpret_cast<Handle>(handle_of(function));
  }
  return CUDA_SUCCESS;
}

}  // namespace

// The modules of a context go with it; a library's variables and functions there, too.
void release_context_modules(Context* context) {
  std::vector<Module*> own;
  driver().tables->modules.for_each([&](Module* module) {
    if (!module->is_library && module->context == context && module->library == nullptr)
      own.push_back(module);
    if (!module->is_library) return;
    std::lock_guard lock(module->mutex);
    std::erase_if(module->variables, [&](auto& entry) { return entry.first.first == context; });
  });
  for (Module* module : own) destroy_module(module);
}

const std::vector<KernelParameter>* parameters_of(const Function* function) {
  if (function->info != nullptr)
    return function->info->has_parameters ? &function->info->parameters : nullptr;
  Module* module =
      function->module->library != nullptr ? function->module->library : function->module;
  if (!module->fat_binary) return nullptr;
  std::lock_guard lock(module->mutex);
  for (;;) {
    if (auto known = module->parameters.find(function->name); known != module->parameters.end())
      return &known->second;
    ImageInfo info;
    if (!module->fat_binary->next(info)) return nullptr;
    // The same kernel has the same parameters for every architecture.
    for (auto& [name, kernel] : info.kernels)
      if (kernel.has_parameters) module->parameters.try_emplace(name, std::move(kernel.parameters));
  }
}

CUresult function_in_context(Function* function, Context* context, Function*& own) {
  if (!function->is_kernel) {
    own = function;
    return CUDA_SUCCESS;
  }
  std::lock_guard lock(function->mutex);
  Function*& found = function->per_context[context];
  if (found == nullptr) {
    found = driver().tables->functions.create();
    if (found == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    found->module = function->module;
    found->name = function->name;
    found->info = function->info;
    found->kernel = function;
    found->max_dynamic_shared = function->max_dynamic_shared.load();
  }
  own = found;
  return CUDA_SUCCESS;
}

int declare_global(void* handle, const char* name, std::size_t size) {
  SIMGPU_TRY(require_init());
  Module* module = driver().tables->modules.find(static_cast<CUmodule>(handle));
  if (module == nullptr || name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard lock(module->mutex);
  module->declared_sizes[name] = size;
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using namespace simgpu;

// ---- modules

CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
  Context* context;
  SIMGPU_TRY(enter(context));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module;
  SIMGPU_TRY(new_module(module, image, context, false));
  *handle = handle_of(module);
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return cuModuleLoadData(handle, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* handle, const void* image) {
  return cuModuleLoadData(handle, image);
}
CUresult cuModuleLoad(CUmodule* handle, const char* path) {
  Context* context;
  SIMGPU_TRY(enter(context));
  std::vector<char> bytes;
  SIMGPU_TRY(read_file(path, bytes));
  return cuModuleLoadData(handle, bytes.data());
}

CUresult cuModuleUnload(CUmodule handle) {
  Module* module;
  SIMGPU_TRY(find_module(handle, module));
  if (module->library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  destroy_module(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  SIMGPU_TRY(require_init());
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
  Module* module;
  SIMGPU_TRY(find_module(module_handle, module));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function;
  SIMGPU_TRY(look_up(module, name, function));
  *handle = handle_of(function);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  Module* module;
  SIMGPU_TRY(find_module(handle, module));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!module->image.readable) return CUDA_ERROR_NOT_SUPPORTED;
  *count = static_cast<unsigned>(module->image.kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
  Module* module;
  SIMGPU_TRY(find_module(handle, module));
  return enumerate(module, functions, count);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes, CUmodule handle,
                              const char* name) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Module* module;
  SIMGPU_TRY(find_module(handle, module));
  return variable(module, context, name, Source::kModule, pointer, bytes);
}

// ---- libraries

CUresult cuLibraryLoadData(CUlibrary* handle, const void* code, CUjit_option*, void**, unsigned int,
                           CUlibraryOption*, void**, unsigned int) {
  SIMGPU_TRY(require_init());
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module;
  SIMGPU_TRY(new_module(module, code, nullptr, true));
  *handle = reinterpret_cast<CUlibrary>(handle_of(module));
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadFromFile(CUlibrary* handle, const char* path, CUjit_option* jit_options,
                               void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                               void** values, unsigned int count) {
  SIMGPU_TRY(require_init());
  std::vector<char> bytes;
  SIMGPU_TRY(read_file(path, bytes));
  return cuLibraryLoadData(handle, bytes.data(), jit_options, jit_values, jit_count, options,
                           values, count);
}

CUresult cuLibraryUnload(CUlibrary handle) {
  Module* module;
  SIMGPU_TRY(find_library(handle, module));
  destroy_module(module);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* handle, CUlibrary library, const char* name) {
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function;
  SIMGPU_TRY(look_up(module, name, function));
  *handle = reinterpret_cast<CUkernel>(handle_of(function));
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!module->image.readable) return CUDA_ERROR_NOT_SUPPORTED;
  *count = static_cast<unsigned>(module->image.kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  return enumerate(module, kernels, count);
}

CUresult cuLibraryGetModule(CUmodule* handle, CUlibrary library) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(module->mutex);
  Module*& own = module->per_context[context];
  if (own == nullptr) {
    own = driver().tables->modules.create();
    if (own == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    own->context = context;
    own->library = module;
  }
  *handle = handle_of(own);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary library,
                            const char* name) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  return variable(module, context, name, Source::kModule, pointer, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr* pointer, size_t* bytes, CUlibrary library,
                             const char* name) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Module* module;
  SIMGPU_TRY(find_library(library, module));
  return variable(module, context, name, Source::kManaged, pointer, bytes);
}
