#include <dlfcn.h>

#include "stack/native_unwinder.h"

namespace vramtrack {
namespace {

using Backtrace = int (*)(void** buffer, int size);
using FlushCache = void (*)(void* space, unsigned long begin, unsigned long end);

Backtrace g_backtrace = nullptr;
FlushCache g_flush = nullptr;
void** g_local_space = nullptr;

}  // namespace

bool open_libunwind() {
  // RTLD_LOCAL: see the header. Never closed.
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  g_backtrace = reinterpret_cast<Backtrace>(dlsym(library, "unw_backtrace"));
  g_flush = reinterpret_cast<FlushCache>(dlsym(library, "_Ux86_64_flush_cache"));
  if (g_flush == nullptr)
    g_flush = reinterpret_cast<FlushCache>(dlsym(library, "_ULx86_64_flush_cache"));
  g_local_space = static_cast<void**>(dlsym(library, "_ULx86_64_local_addr_space"));
  return g_backtrace != nullptr;
}

size_t libunwind_backtrace(NativeFrame* frames, size_t max) {
  if (g_backtrace == nullptr) return 0;
  constexpr size_t kMost = 512;
  void* addresses[kMost];
  const int count = g_backtrace(addresses, static_cast<int>(max < kMost ? max : kMost));
  for (int i = 0; i < count; ++i) frames[i] = {reinterpret_cast<uintptr_t>(addresses[i]), 0};
  return count > 0 ? static_cast<size_t>(count) : 0;
}

void libunwind_flush() {
  if (g_flush != nullptr && g_local_space != nullptr) g_flush(*g_local_space, 0, 0);
}

}  // namespace vramtrack
