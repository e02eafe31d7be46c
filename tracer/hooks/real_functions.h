// The functions behind our wrappers.
//
// Driver: there is one libcuda.so.1. All its functions are looked up at once, when it is first
// seen, together with those that we call ourselves; addresses that it hands out are then mapped to
// wrappers.
//
// Runtime and c10: several can live in one process, so the real function depends on who calls: the
// runtime that the calling object names in its DT_NEEDED. Found once per caller and remembered.
#ifndef VRAMTRACK_TRACER_HOOKS_REAL_FUNCTIONS_H
#define VRAMTRACK_TRACER_HOOKS_REAL_FUNCTIONS_H

#include "hooks/cuda_api.h"
#include "hooks/table.h"

namespace vramtrack {

// Driver functions that handlers call for themselves. Any may be nullptr in an older driver.
struct DriverCalls {
#define CALL(name) decltype(&::name) name = nullptr;
#include "hooks/driver_calls.def"
#undef CALL
};

// nullptr while libcuda.so.1 is not loaded, or where this driver lacks the function.
void* real_driver(Hook hook);
const DriverCalls& driver_calls();
bool driver_is_simulated();

// The simulated driver's account of the values that it had to assume; nullptr with a real driver.
using SimulatedAssumptions = void (*)(void (*visit)(const char* operation, uint64_t count, void*),
                                      void* user);
SimulatedAssumptions simulated_assumptions();

// What it estimates that libraries hold of the device beside any allocation; 0 with a real driver.
using SimulatedLibraryBytes = uint64_t (*)(int device);
uint64_t simulated_library_bytes(int device);

// The wrapper for an address that the driver handed out; the address itself where we have none.
void* wrapper_for(void* real);

// What `caller` (a return address) means by this name; nullptr where nobody exports it.
struct RealFunction {
  void* address = nullptr;
  bool from_allocator = false;  // the caller is PyTorch's caching allocator (libc10_cuda.so)
};
RealFunction real_with_caller(Hook hook, const void* caller);
inline void* real_for_caller(Hook hook, const void* caller) {
  return real_with_caller(hook, caller).address;
}

// Whether anybody but us exports the name.
bool somebody_exports(Hook hook);

// Addresses of unloaded libraries must not be remembered.
void forget_callers();

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_REAL_FUNCTIONS_H
