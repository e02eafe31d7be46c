#include "hooks/table.h"

// The wrappers under a type that does not matter: only their addresses are used here. Assembler
// names keep these declarations apart from the real ones in the CUDA headers.
#define WRAPPER(name) extern "C" void vramtrack_wrapper_##name() __asm__(#name);
#define DRIVER(name, declared, handler, parameters, arguments) WRAPPER(name)
#define RUNTIME(name, declared, parameters, arguments) WRAPPER(name)
#define SPECIAL(name) WRAPPER(name)
#include "hooks/hooks.def"
#undef DRIVER
#undef RUNTIME
#undef SPECIAL

namespace vramtrack {
namespace {

// Constant: look-ups come before any constructor of ours has run.
#define ENTRY(name, is_driver) {#name, &vramtrack_wrapper_##name, is_driver},
#define DRIVER(name, declared, handler, parameters, arguments) ENTRY(name, true)
#define RUNTIME(name, declared, parameters, arguments) ENTRY(name, false)
#define SPECIAL(name) ENTRY(name, false)
constinit const HookInfo kHooks[kHookCount] = {
#include "hooks/hooks.def"
};
#undef DRIVER
#undef RUNTIME
#undef SPECIAL
#undef ENTRY

}  // namespace

const HookInfo& hook_info(Hook hook) {
  return kHooks[static_cast<size_t>(hook)];
}

Hook find_hook(const char* name) {
  // "cu..." or "_ZN3c10...": everything else is decided by its first letters.
  if (name[0] != 'c' && name[0] != '_') return Hook::count;
  if (name[1] != 'u' && name[1] != 'Z') return Hook::count;
  const std::string_view wanted(name);
  for (size_t i = 0; i < kHookCount; ++i)
    if (kHooks[i].name == wanted) return static_cast<Hook>(i);
  return Hook::count;
}

}  // namespace vramtrack
