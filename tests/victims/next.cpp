// A library that puts itself in front of a function of libc and finds the real one with RTLD_NEXT.
// Through somebody's dlsym hook that must still be the one behind this library, or it calls itself
// for ever.
#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>

namespace {
int calls = 0;
}

extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  using Getenv = char* (*)(const char*);
  static const Getenv real = reinterpret_cast<Getenv>(dlsym(RTLD_NEXT, "getenv"));
  ++calls;
  if (calls > 100000) abort();
  return real != nullptr ? real(name) : nullptr;
}

// Asked twice: a hook that remembers what it has answered must give the second answer too.
extern "C" __attribute__((visibility("default"))) int victim_next_check(void) {
  void* first = dlsym(RTLD_NEXT, "getenv");
  void* second = dlsym(RTLD_NEXT, "getenv");
  Dl_info found{};
  Dl_info own{};
  if (first == nullptr || first != second) return 1;
  if (dladdr(first, &found) == 0 || dladdr(reinterpret_cast<void*>(&calls), &own) == 0) return 2;
  return found.dli_fbase != own.dli_fbase ? 0 : 3;
}
