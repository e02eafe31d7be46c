// The exported runtime functions, generated from hooks.def. Each only notes its name and forwards:
// the runtime reaches the driver, and there the call is counted, once.
#include <cuda_runtime_api.h>

#include <type_traits>

#include "hooks/emit.h"
#include "hooks/real_functions.h"

#define DRIVER(name, declared, handler, parameters, arguments)
#define SPECIAL(name)
#define RUNTIME(name, declared, parameters, arguments)                                    \
  extern "C" __attribute__((visibility("default"))) cudaError_t name parameters {         \
    using Function = cudaError_t(*) parameters;                                           \
    static_assert(std::is_same_v<Function, decltype(static_cast<Function>(&::declared))>, \
                  #name " differs from cuda_runtime_api.h");                              \
    const auto real = reinterpret_cast<Function>(                                         \
        vramtrack::real_for_caller(vramtrack::Hook::name, __builtin_return_address(0)));  \
    if (real == nullptr) return cudaErrorInsufficientDriver;                              \
    const vramtrack::ApiTag tag(#name);                                                   \
    return real arguments;                                                                \
  }

#include "hooks/hooks.def"
