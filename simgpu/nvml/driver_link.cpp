#include "driver_link.h"

#include <dlfcn.h>

#include <string>

namespace simgpu {
namespace {

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

DriverLink link_to(void* library) {
  DriverLink link;
  if (library == nullptr) return link;
  look_up(library, "simgpu_describe_count", link.describe_count);
  look_up(library, "simgpu_describe", link.describe);
  look_up(library, "simgpu_get_usage", link.get_usage);
  return link;
}

std::string beside_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&driver_link), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
}

}  // namespace

const DriverLink& driver_link() {
  static const DriverLink link = [] {
    DriverLink loaded = link_to(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD));
    if (loaded.found()) return loaded;
    return link_to(dlopen(beside_this_library().c_str(), RTLD_LAZY | RTLD_LOCAL));
  }();
  return link;
}

}  // namespace simgpu
