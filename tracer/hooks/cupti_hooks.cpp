// Functions of libcupti with which a program begins to use it. Each only makes room and forwards,
// to the libcupti that the caller is linked to; without --cupti there is nothing to make room from.
#include "hooks/cupti_hooks.h"

#include <atomic>

#include "cupti/witness.h"
#include "hooks/cupti_library.h"
#include "hooks/real_functions.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"

namespace vramtrack {
namespace {

constinit std::atomic<bool> g_tried{false};

}  // namespace

void start_cupti_if_wanted() {
  if (!config().cupti || !wanted() || g_tried.exchange(true, std::memory_order_relaxed)) return;
  int version = 0;
  const DriverCalls& driver = driver_calls();
  if (driver.cuDriverGetVersion != nullptr) driver.cuDriverGetVersion(&version);
  CuptiLibrary library;
  find_cupti(library, version);
  if (library.why_not.size() != 0) return cupti_unavailable(library.why_not.c_str());
  start_cupti(library.functions, library.path.c_str());
}

bool is_cupti_hook(Hook hook) {
  return hook >= Hook::cuptiSubscribe && hook <= Hook::cuptiProfilerInitialize;
}

void program_wants_cupti(Hook hook) {
  if (!config().cupti) return;
  const Guard guard;
  step_aside_from_cupti(hook_info(hook).name.data());
}

}  // namespace vramtrack

// A register per argument is passed on, used or not. Assembler names keep these apart from the
// declarations of the CUPTI headers.
#define CUPTI(name)                                                                       \
  extern "C" __attribute__((visibility("default"))) int vramtrack_##name(                 \
      void* a, void* b, void* c, void* d, void* e, void* f) __asm__(#name);               \
  extern "C" int vramtrack_##name(void* a, void* b, void* c, void* d, void* e, void* f) { \
    const auto real = reinterpret_cast<decltype(&vramtrack_##name)>(                      \
        vramtrack::real_for_caller(vramtrack::Hook::name, __builtin_return_address(0)));  \
    if (real == nullptr) return 15; /* CUPTI_ERROR_NOT_INITIALIZED */                     \
    if (vramtrack::t_inside == 0) vramtrack::program_wants_cupti(vramtrack::Hook::name);  \
    return real(a, b, c, d, e, f);                                                        \
  }
#include "hooks/cupti_functions.def"
