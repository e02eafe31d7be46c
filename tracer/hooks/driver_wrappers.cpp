// The exported driver functions, generated from hooks.def. A wrapper whose signature differs from
// cuda.h's does not compile.
#include <type_traits>

#include "hooks/first_contact.h"
#include "hooks/handlers.h"
#include "hooks/real_functions.h"
#include "record/guard.h"
#include "record/process.h"

#define VRAMTRACK_UNPACK(...) __VA_OPT__(, ) __VA_ARGS__
#define DRIVER(name, declared, handler, parameters, arguments)                                    \
  extern "C" __attribute__((visibility("default"))) CUresult name parameters {                    \
    using Function = CUresult(*) parameters;                                                      \
    static_assert(std::is_same_v<Function, decltype(&::declared)>, #name " differs from cuda.h"); \
    const auto real = reinterpret_cast<Function>(vramtrack::real_driver(vramtrack::Hook::name));  \
    if (real == nullptr) return CUDA_ERROR_NOT_FOUND;                                             \
    const vramtrack::Guard guard;                                                                 \
    if (!guard.outermost() || !vramtrack::ready()) return real arguments;                         \
    vramtrack::first_contact();                                                                   \
    const vramtrack::Call call{#name};                                                            \
    return vramtrack::handler(call, real VRAMTRACK_UNPACK arguments);                             \
  }
#define RUNTIME(name, declared, parameters, arguments)
#define SPECIAL(name)

#include "hooks/hooks.def"
