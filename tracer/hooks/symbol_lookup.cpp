// The ways by which a program obtains the address of a function without naming it to the linker:
// dlsym, cuGetProcAddress, cudaGetDriverEntryPoint. In each the real look-up comes first, and the
// address that it found is exchanged for a wrapper. Versions, flags and per-thread streams are
// thereby the driver's business, and names that we do not know pass untouched.
#include <dlfcn.h>

#include "hooks/cupti_hooks.h"
#include "hooks/first_contact.h"
#include "hooks/handlers.h"
#include "hooks/loaded_objects.h"
#include "hooks/real_functions.h"
#include "record/guard.h"
#include "record/process.h"

extern "C" {

using DlsymFunction = void* (*)(void*, const char*);
__attribute__((visibility("hidden"))) DlsymFunction vramtrack_real_dlsym = nullptr;
__attribute__((visibility("hidden"))) void* vramtrack_answer_dlsym(void* handle, const char* name);
}

namespace vramtrack {
namespace {

void* const kNotOurs = reinterpret_cast<void*>(1);

// Constructors of other libraries may call dlsym before ours has run. glibc 2.34 moved the function
// from libdl to libc and gave it a new version.
void find_real_dlsym() {
  void* real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (real == nullptr) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  vramtrack_real_dlsym = reinterpret_cast<DlsymFunction>(real);
}

// Nothing, said by the loader, so that dlerror() has something to say: behind us there is none of
// the name.
void* not_found(const char* name) {
  return vramtrack_real_dlsym(RTLD_NEXT, name);
}

void* answer(void* handle, const char* name) {
  // Inside the tracer the driver looks up things of its own.
  if (name == nullptr || t_inside != 0) return kNotOurs;
  const Hook hook = find_hook(name);
  if (hook == Hook::count) return kNotOurs;
  const Guard guard;
  // The loader would find our wrapper where nothing is behind it, and a program would take that for
  // a CUDA installation.
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
    return somebody_exports(hook) ? kNotOurs : not_found(name);
  void* found = vramtrack_real_dlsym(handle, name);
  if (found == nullptr) return nullptr;
  if (is_ours(found)) return somebody_exports(hook) ? found : not_found(name);
  if (is_cupti_hook(hook)) program_wants_cupti(hook);
  if (!hook_info(hook).driver || !ready()) return found;
  first_contact();
  return wrapper_for(found);
}

void exchange(void** function) {
  if (function != nullptr) *function = wrapper_for(*function);
}

}  // namespace

CUresult get_proc_address(const Call& /*call*/,
                          CUresult (*real)(const char*, void**, int, cuuint64_t),
                          const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) exchange(function);
  return result;
}

CUresult get_proc_address_v2(const Call& /*call*/,
                             CUresult (*real)(const char*, void**, int, cuuint64_t,
                                              CUdriverProcAddressQueryResult*),
                             const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  const CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) exchange(function);
  return result;
}

}  // namespace vramtrack

void* vramtrack_answer_dlsym(void* handle, const char* name) {
  if (vramtrack_real_dlsym == nullptr) vramtrack::find_real_dlsym();
  return vramtrack::answer(handle, name);
}

// The runtime's own look-up. CUDA 11's form has one argument less; it ignores the last.
#define ENTRY_POINT(name)                                                                \
  extern "C" __attribute__((visibility("default"))) int name(                            \
      const char* symbol, void** function, unsigned long long flags, void* status) {     \
    const auto real = reinterpret_cast<decltype(&name)>(                                 \
        vramtrack::real_for_caller(vramtrack::Hook::name, __builtin_return_address(0))); \
    if (real == nullptr) return 500; /* cudaErrorSymbolNotFound */                       \
    const int result = real(symbol, function, flags, status);                            \
    if (result == 0) vramtrack::exchange(function);                                      \
    return result;                                                                       \
  }
ENTRY_POINT(cudaGetDriverEntryPoint)
ENTRY_POINT(cudaGetDriverEntryPoint_ptsz)

#define ENTRY_POINT_BY_VERSION(name)                                                     \
  extern "C" __attribute__((visibility("default"))) int name(                            \
      const char* symbol, void** function, unsigned version, unsigned long long flags,   \
      void* status) {                                                                    \
    const auto real = reinterpret_cast<decltype(&name)>(                                 \
        vramtrack::real_for_caller(vramtrack::Hook::name, __builtin_return_address(0))); \
    if (real == nullptr) return 500; /* cudaErrorSymbolNotFound */                       \
    const int result = real(symbol, function, version, flags, status);                   \
    if (result == 0) vramtrack::exchange(function);                                      \
    return result;                                                                       \
  }
ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion)
ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion_ptsz)
