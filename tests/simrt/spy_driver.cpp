// A libcuda.so.1 that stands between the runtime and the simulated driver, and tells what goes
// through it.
//
// It writes to stderr, at the end of the process:
//   asked NAME VERSION FLAGS    every request to cuGetProcAddress_v2, in order
//   launched ENTRY COUNT        calls of each launch entry point
//   looked-up NAME              a symbol that somebody found here by dlsym: any but
//   cuGetProcAddress_v2 ends
//                               the process, because the runtime must not know another way
// The driver behind it is the file that SPY_DRIVER names.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

struct Request {
  std::string name;
  int version;
  unsigned long long flags;
};

struct Spy {
  std::mutex guard;
  std::vector<Request> requests;
  GetProcAddress real = nullptr;
  int (*declare_global)(void*, const char*, size_t) = nullptr;
};

Spy& spy() {
  static Spy* const the_spy = new Spy;
  return *the_spy;
}

enum Entry { kPlain, kPlainPtsz, kEx, kExPtsz, kCooperative, kCooperativePtsz, kEntries };

const char* const entry_names[kEntries] = {
    "cuLaunchKernel",        "cuLaunchKernel_ptsz",       "cuLaunchKernelEx",
    "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"};

unsigned long long counts[kEntries];
void* real_entries[kEntries];

template <Entry kEntry>
CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  __atomic_add_fetch(&counts[kEntry], 1, __ATOMIC_RELAXED);
  return reinterpret_cast<decltype(&launch<kEntry>)>(real_entries[kEntry])(
      f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

template <Entry kEntry>
CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  __atomic_add_fetch(&counts[kEntry], 1, __ATOMIC_RELAXED);
  return reinterpret_cast<decltype(&launch_ex<kEntry>)>(real_entries[kEntry])(config, f, params,
                                                                              extra);
}

template <Entry kEntry>
CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void** params) {
  __atomic_add_fetch(&counts[kEntry], 1, __ATOMIC_RELAXED);
  return reinterpret_cast<decltype(&launch_cooperative<kEntry>)>(real_entries[kEntry])(
      f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

struct Wrapper {
  const char* name;
  unsigned long long flags;
  Entry entry;
  void* function;
};

const Wrapper wrappers[] = {
    {"cuLaunchKernel", 0, kPlain, reinterpret_cast<void*>(&launch<kPlain>)},
    {"cuLaunchKernel", 2, kPlainPtsz, reinterpret_cast<void*>(&launch<kPlainPtsz>)},
    {"cuLaunchKernelEx", 0, kEx, reinterpret_cast<void*>(&launch_ex<kEx>)},
    {"cuLaunchKernelEx", 2, kExPtsz, reinterpret_cast<void*>(&launch_ex<kExPtsz>)},
    {"cuLaunchCooperativeKernel", 0, kCooperative,
     reinterpret_cast<void*>(&launch_cooperative<kCooperative>)},
    {"cuLaunchCooperativeKernel", 2, kCooperativePtsz,
     reinterpret_cast<void*>(&launch_cooperative<kCooperativePtsz>)},
};

__attribute__((destructor)) void tell() {
  for (const Request& request : spy().requests) {
    std::fprintf(stderr, "asked %s %d %llu\n", request.name.empty() ? "-" : request.name.c_str(),
                 request.version, request.flags);
  }
  for (int i = 0; i < kEntries; ++i) {
    std::fprintf(stderr, "launched %s %llu\n", entry_names[i], counts[i]);
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  const std::lock_guard<std::mutex> lock(spy().guard);
  if (spy().real == nullptr) {
    void* behind = dlopen(std::getenv("SPY_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (behind == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
    spy().declare_global =
        reinterpret_cast<decltype(Spy::declare_global)>(dlsym(behind, "simgpu_declare_global"));
    spy().real = reinterpret_cast<GetProcAddress>(dlsym(behind, "cuGetProcAddress_v2"));
  }
  spy().requests.push_back({name, version, flags});
  const CUresult result = spy().real(name, address, version, flags, status);
  for (const Wrapper& wrapper : wrappers) {
    if (result == CUDA_SUCCESS && std::strcmp(name, wrapper.name) == 0 && flags == wrapper.flags) {
      real_entries[wrapper.entry] = *address;
      *address = wrapper.function;
    }
  }
  return result;
}

// The one thing beside the CUDA driver API that the runtime asks a simulated driver for (simgpu.h).
EXPORT int simgpu_declare_global(void* library, const char* name, size_t size) {
  return spy().declare_global != nullptr ? spy().declare_global(library, name, size) : 801;
}

// A second way in. The names differ from those in the headers only here, so that the headers' types
// stay out.
#define FORBIDDEN(name)                            \
  EXPORT void forbidden_##name() __asm__(#name);   \
  EXPORT void forbidden_##name() {                 \
    std::fprintf(stderr, "looked-up " #name "\n"); \
    std::_Exit(9);                                 \
  }
FORBIDDEN(cuInit)
FORBIDDEN(cuMemAlloc_v2)
FORBIDDEN(cuMemcpyHtoD_v2)
FORBIDDEN(cuLaunchKernel)
