// The hooks as data: one number, name and wrapper per line of hooks.def.
#ifndef VRAMTRACK_TRACER_HOOKS_TABLE_H
#define VRAMTRACK_TRACER_HOOKS_TABLE_H

#include <cstdint>
#include <string_view>

#include "hooks/cuda_api.h"

namespace vramtrack {

enum class Hook : uint16_t {
#define DRIVER(name, declared, handler, parameters, arguments) name,
#define RUNTIME(name, declared, parameters, arguments) name,
#define SPECIAL(name) name,
#include "hooks/hooks.def"
#undef DRIVER
#undef RUNTIME
#undef SPECIAL
  count
};

inline constexpr size_t kHookCount = static_cast<size_t>(Hook::count);

struct HookInfo {
  std::string_view name;
  void (*wrapper)();
  bool driver;
};

const HookInfo& hook_info(Hook hook);
// Hook::count where the name is none of ours. Exact names only: the driver, cuBLAS and curl all
// export names that begin with "cu".
Hook find_hook(const char* name);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_TABLE_H
