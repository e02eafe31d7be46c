// What the tracer does at each driver call: forward it, then write down what it changed. One
// function per handler name in hooks.def; each is called by the wrapper under the guard.
//
// The rules: the real function is called exactly once, with the arguments as they came, and its
// result is returned as it is. Out-parameters are read only after success, and only where they are
// not null. Allocations are recorded after the call, frees before and after it.
#ifndef VRAMTRACK_TRACER_HOOKS_HANDLERS_H
#define VRAMTRACK_TRACER_HOOKS_HANDLERS_H

#include "hooks/cuda_api.h"
#include "hooks/emit.h"

namespace vramtrack {

// Several exported names share a handler: then the later lines repeat this declaration.
#define DRIVER(name, declared, handler, parameters, arguments) \
  CUresult handler(const Call& call, CUresult(*real) parameters VRAMTRACK_UNPACK parameters);
#define VRAMTRACK_UNPACK(...) __VA_OPT__(, ) __VA_ARGS__
#define RUNTIME(name, declared, parameters, arguments)
#define SPECIAL(name)

#include "hooks/hooks.def"

#undef DRIVER
#undef RUNTIME
#undef SPECIAL
#undef VRAMTRACK_UNPACK

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_HANDLERS_H
