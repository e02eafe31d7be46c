// Preloaded into PyTorch: at each larger allocation on the heap, both walks; counts where they
// differ.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "stack/modules.h"
#include "stack/native_unwinder.h"

namespace vramtrack {
namespace {

constexpr size_t kMost = 512;
thread_local bool t_busy __attribute__((tls_model("initial-exec"))) = false;
std::atomic<bool> g_ready{false};
std::atomic<unsigned> g_walks{0};
std::atomic<unsigned> g_left{0};  // to libunwind
std::atomic<unsigned> g_differ{0};
std::atomic<unsigned> g_frames{0};
std::atomic<unsigned long> g_own_ns{0};
std::atomic<unsigned long> g_reference_ns{0};

unsigned long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<unsigned long>(time.tv_sec) * 1000000000UL +
         static_cast<unsigned long>(time.tv_nsec);
}

__attribute__((noinline)) void compare() {
  NativeFrame own[kMost];
  NativeFrame reference[kMost];
  const unsigned long start = now();
  const size_t own_count = cfi_backtrace(own, kMost);
  const unsigned long middle = now();
  const size_t reference_count = libunwind_backtrace(reference, kMost);
  g_own_ns += middle - start;
  g_reference_ns += now() - middle;
  ++g_walks;
  if (own_count == 0) {
    ++g_left;
    return;
  }
  g_frames += static_cast<unsigned>(own_count);
  size_t at = 0;
  while (at < reference_count && reference[at].pc != own[1].pc) ++at;
  bool same = reference_count - at == own_count - 1;
  for (size_t i = 1; same && i < own_count; ++i) same = own[i].pc == reference[at + i - 1].pc;
  if (!same && ++g_differ <= 3)
    std::fprintf(stderr, "differ: %zu own, %zu reference frames\n", own_count - 1,
                 reference_count - at);
}

}  // namespace
}  // namespace vramtrack

using namespace vramtrack;

extern "C" __attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment,
                                                                     size_t bytes) {
  using Function = int (*)(void**, size_t, size_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "posix_memalign"));
  if (g_ready && bytes >= 4096 && !t_busy) {
    t_busy = true;
    compare();
    t_busy = false;
  }
  return real(out, alignment, bytes);
}

extern "C" __attribute__((visibility("default"))) void compare_walks(int on) {
  g_ready = on != 0;
}

__attribute__((constructor)) static void start() {
  modules_refresh();
  open_libunwind();
}

__attribute__((destructor)) static void finish() {
  const unsigned walks = g_walks;
  if (walks == 0) return;
  std::printf("walks %u left %u differ %u frames %u own_ns %lu reference_ns %lu\n", walks,
              g_left.load(), g_differ.load(), g_frames.load() / walks, g_own_ns.load() / walks,
              g_reference_ns.load() / walks);
}
