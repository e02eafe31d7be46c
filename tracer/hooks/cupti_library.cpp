// The danger: a process can hold several libcuptis (PyTorch's, a toolkit's, Triton's), and one that
// we open under a soname becomes the one that a library loaded later gets. So what is there is
// used, then what lies beside the runtime in use, and only then what the system offers. The
// simulated driver goes with the stand-in alone: NVIDIA's library wants private tables of the
// driver.
#include "hooks/cupti_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "hooks/loaded_objects.h"
#include "hooks/real_functions.h"
#include "record/config.h"
#include "record/slice.h"

namespace vramtrack {
namespace {

constexpr std::string_view kPrefix = "libcupti.so.";

bool has_prefix(std::string_view name, std::string_view prefix) {
  return slice(name, 0, prefix.size()) == prefix;
}

bool suits_the_driver(const LoadedObject& object) {
  return object.exports_prefix("simgpu_") == driver_is_simulated();
}

bool is_cupti(const LoadedObject& object) {
  return !is_ours(reinterpret_cast<const void*>(object.begin())) &&
         object.find("cuptiSubscribe") != nullptr;
}

// Whether a library of the program, and not merely a preload list, asked for this soname.
bool is_needed(std::string_view soname) {
  bool needed = false;
  for_each_loaded_object([&](const LoadedObject& object) {
    needed = object.needs(soname);
    return !needed;
  });
  return needed;
}

void read(const LoadedObject& object, CuptiLibrary& found) {
#define FUNCTION(name) found.functions.name = object.find(#name);
#include "cupti/functions.def"
#undef FUNCTION
  found.path.clear();
  found.path.add(object.path().empty() ? object.name() : object.path());
}

struct Soname {
  char text[32];
};

constexpr size_t kMaxLoaded = 8;

// Of several the one that the program's libraries are linked to, else the first.
bool find_loaded(CuptiLibrary& found) {
  Soname sonames[kMaxLoaded];
  size_t count = 0;
  for_each_loaded_object([&](const LoadedObject& object) {
    const std::string_view name = object.name();
    if (!has_prefix(name, kPrefix) || name.size() >= sizeof(Soname) || !is_cupti(object) ||
        !suits_the_driver(object))
      return true;
    std::memcpy(sonames[count].text, name.data(), name.size());
    sonames[count].text[name.size()] = '\0';
    return ++count < kMaxLoaded;
  });
  if (count == 0) return false;
  std::string_view chosen = sonames[0].text;
  for (size_t i = count; i-- > 0;)
    if (is_needed(sonames[i].text)) chosen = sonames[i].text;
  for_each_loaded_object([&](const LoadedObject& object) {
    if (object.name() != chosen || !is_cupti(object) || !suits_the_driver(object)) return true;
    read(object, found);
    return false;
  });
  return true;
}

bool open(const char* path, CuptiLibrary& found) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  bool suits = false;
  for_each_loaded_object([&](const LoadedObject& object) {
    if (object.path() != map->l_name || !is_cupti(object)) return true;
    suits = suits_the_driver(object);
    if (suits) read(object, found);
    return false;
  });
  if (!suits) dlclose(handle);
  return suits;
}

bool open_file(const FixedText<512>& path, CuptiLibrary& found) {
  return !path.full() && access(path.c_str(), R_OK) == 0 && open(path.c_str(), found);
}

std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view(".") : slice(path, 0, slash);
}

// The folder and the major version of the runtime in use.
struct Runtime {
  FixedText<512> folder;
  unsigned major = 0;
};

bool find_runtime(Runtime& runtime) {
  for_each_loaded_object([&](const LoadedObject& object) {
    constexpr std::string_view kRuntime = "libcudart.so.";
    if (!has_prefix(object.name(), kRuntime)) return true;
    const std::string_view name = object.name();
    runtime.major = static_cast<unsigned>(std::strtoul(name.data() + kRuntime.size(), nullptr, 10));
    runtime.folder.add(folder_of(object.path()));
    return false;
  });
  return runtime.major != 0;
}

bool open_below(std::string_view folder, std::string_view inner, unsigned major,
                CuptiLibrary& found) {
  FixedText<512> path;
  path.add(folder).add(inner).add(kPrefix).add(uint64_t{major});
  return open_file(path, found);
}

// One wheel for all of CUDA 13, one per library of CUDA 12, or a toolkit.
bool find_beside_runtime(const Runtime& runtime, CuptiLibrary& found) {
  for (const char* inner : {"/", "/../../cuda_cupti/lib/", "/../extras/CUPTI/lib64/"})
    if (open_below(runtime.folder.view(), inner, runtime.major, found)) return true;
  return false;
}

// The simulated GPU's libraries lie together, and a program of the driver alone has no runtime.
bool find_beside_driver(unsigned major, CuptiLibrary& found) {
  FixedText<512> folder;
  for_each_loaded_object([&](const LoadedObject& object) {
    if (!has_prefix(object.name(), "libcuda.so.")) return true;
    folder.add(folder_of(object.path()));
    return false;
  });
  return folder.size() != 0 && open_below(folder.view(), "/", major, found);
}

bool find_in_system(unsigned major, CuptiLibrary& found) {
  FixedText<32> soname;
  soname.add(kPrefix).add(uint64_t{major});
  if (open(soname.c_str(), found)) return true;
  const char* home = std::getenv("CUDA_HOME");
  for (const char* folder : {home, "/usr/local/cuda"})
    for (const char* inner :
         {"/extras/CUPTI/lib64/", "/lib64/", "/targets/x86_64-linux/lib/", "/lib/"})
      if (folder != nullptr && open_below(folder, inner, major, found)) return true;
  return false;
}

}  // namespace

void find_cupti(CuptiLibrary& found, int driver_version) {
  if (const char* given = config().cupti_library) {
    if (open(given, found)) return;
    const char* error = dlerror();
    found.why_not.add(error != nullptr ? error : given);
    if (error == nullptr)
      found.why_not.add(driver_is_simulated()
                            ? " is not the stand-in that goes with the simulated GPU"
                            : " is a stand-in, and this GPU is not simulated");
    return;
  }
  if (find_loaded(found)) return;
  Runtime runtime;
  if (find_runtime(runtime) && find_beside_runtime(runtime, found)) return;
  const unsigned newest = runtime.major != 0   ? runtime.major
                          : driver_version > 0 ? static_cast<unsigned>(driver_version / 1000)
                                               : 13;
  if (driver_is_simulated() && find_beside_driver(newest, found)) return;
  if (find_in_system(newest, found)) return;
  if (newest > 12 && find_in_system(newest - 1, found)) return;
  found.why_not.add("no libcupti.so.")
      .add(uint64_t{newest})
      .add(driver_is_simulated()
               ? " of the simulated GPU was found"
               : " was found (in a CUDA toolkit, or pip install nvidia-cuda-cupti)");
}

}  // namespace vramtrack
