// The library's beginning in a process, and what waits until the process uses a GPU.
#include <dlfcn.h>
#include <link.h>

#include "cupti/witness.h"
#include "hooks/first_contact.h"
#include "hooks/pending_frees.h"
#include "hooks/real_functions.h"
#include "hooks/sampling.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/live_blocks.h"
#include "record/live_totals.h"
#include "record/process.h"
#include "stack/stack.h"

#ifdef VRAMTRACK_HAVE_HELPER
#include "python/helper.h"
#endif

namespace vramtrack {

constinit std::atomic<bool> g_begun{false};
constinit std::atomic<bool> g_contacted{false};

void make_first_contact() {
  if (g_contacted.exchange(true, std::memory_order_relaxed)) return;
  // Libraries, and perhaps a Python, that arrived after the constructor.
  stacks_on_dlopen();
#ifdef VRAMTRACK_HAVE_HELPER
  if (config().helper) python_helper_start_if_possible();
#endif
}

namespace {

void forget_parent() {
  stacks_after_fork_child();
  forget_pending_frees();
  forget_sampled();
  cupti_after_fork_child();
  live_blocks_after_fork_child();
  live_totals_after_fork_child();
#ifdef VRAMTRACK_HAVE_HELPER
  python_helper_after_fork_child();
#endif
}

__attribute__((constructor)) void library_begins() {
  begin();
}

}  // namespace

void begin() {
  static constinit std::atomic<bool> beginning{false};
  if (beginning.exchange(true)) return;  // by us or by another thread, whose calls come first
  const Guard guard;
  read_config();
  if (config().enabled) {
    process_initialize();
    call_in_children(forget_parent);
    stacks_initialize();
#ifdef VRAMTRACK_HAVE_HELPER
    if (config().helper) python_helper_start_if_possible();
#endif
  }
  g_begun.store(true, std::memory_order_release);
}

}  // namespace vramtrack

namespace {

// How many libraries have gone so far.
unsigned long long unloaded_libraries() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<unsigned long long*>(data) = info->dlpi_subs;
        return 1;
      },
      &count);
  return count;
}

}  // namespace

// Libraries that go take the addresses in our caches with them.
extern "C" __attribute__((visibility("default"))) int dlclose(void* handle) {
  using Function = int (*)(void*);
  static Function real = nullptr;
  if (real == nullptr) real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "dlclose"));
  if (!vramtrack::g_contacted.load(std::memory_order_relaxed)) return real(handle);
  const unsigned long long before = unloaded_libraries();
  const int result = real(handle);
  if (unloaded_libraries() != before) {
    const vramtrack::Guard guard;
    vramtrack::forget_callers();
    vramtrack::stacks_on_dlclose();
  }
  return result;
}
