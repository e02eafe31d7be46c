#include "runtime/driver_table.h"

#include <dlfcn.h>

#include <cstddef>
#include <mutex>

namespace simgpu {
namespace {

using GetProcAddress = PFN_cuGetProcAddress_v12000;

// The status of a look-up is not asked for, and a function that the driver does not have stays
// null: it is missed when it is called, not before.
template <class Function>
void ask(GetProcAddress get, const char* name, int version, cuuint64_t flags, Function& out) {
  void* address = nullptr;
  if (get(name, &address, version, flags, nullptr) == CUDA_SUCCESS) {
    out = reinterpret_cast<Function>(address);
  }
}

void ask_for_all(GetProcAddress get, Driver& driver) {
#define DRIVER(name, version) ask(get, "cu" #name, version, 0, driver.plain.name);
#define STREAM(name, version, thread_version)                                         \
  ask(get, "cu" #name, version, 0, driver.legacy.name);                               \
  ask(get, "cu" #name, thread_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, \
      driver.per_thread.name);
#include "runtime/driver_functions.def"
#undef DRIVER
#undef STREAM
}

void open_driver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    return;
  }
  auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    return;
  }
  // The vendor's runtime begins with an empty name and asks the function for itself at both of its
  // versions; a tracer has to survive that, so it happens here too.
  void* ignored = nullptr;
  get("", &ignored, 0, 0, nullptr);
  PFN_cuInit_v2000 init = nullptr;
  ask(get, "cuInit", 2000, 0, init);
  get("cuGetProcAddress", &ignored, 11030, 0, nullptr);
  ask(get, "cuGetProcAddress", 12000, 0, driver.get_proc_address);
  ask_for_all(get, driver);
  if (init == nullptr || driver.get_proc_address == nullptr) {
    return;
  }
  int version = 0;
  if (driver.plain.DriverGetVersion == nullptr ||
      driver.plain.DriverGetVersion(&version) != CUDA_SUCCESS) {
    return;
  }
  // A driver of the runtime's own major version is enough: that is minor version compatibility.
  if (version / 1000 < CUDART_VERSION / 1000) {
    return;
  }
  driver.status = static_cast<cudaError_t>(init(0));
}

template <class Table>
const char* name_at(const Table& table, const void* member, const char* const* names) {
  const auto offset = static_cast<const char*>(member) - reinterpret_cast<const char*>(&table);
  return names[static_cast<size_t>(offset) / sizeof(void*)];
}

}  // namespace

const Driver& driver() {
  static Driver the_driver;
  static std::once_flag opened;
  std::call_once(opened, [] { open_driver(the_driver); });
  return the_driver;
}

const char* driver_function_name(const DriverTable& table, const void* member) {
  static const char* const names[] = {
#define DRIVER(name, version) "cu" #name,
#define STREAM(name, version, thread_version)
#include "runtime/driver_functions.def"
#undef DRIVER
#undef STREAM
  };
  return name_at(table, member, names);
}

const char* driver_function_name(const StreamTable& table, const void* member) {
  static const char* const names[] = {
#define DRIVER(name, version)
#define STREAM(name, version, thread_version) "cu" #name,
#include "runtime/driver_functions.def"
#undef DRIVER
#undef STREAM
  };
  return name_at(table, member, names);
}

}  // namespace simgpu
