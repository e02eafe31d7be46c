// From a hook to the trace: the event gets the name that the program called and its stack.
#ifndef VRAMTRACK_TRACER_HOOKS_EMIT_H
#define VRAMTRACK_TRACER_HOOKS_EMIT_H

#include <vramtrack/trace_format.h>

#include <cstdint>

namespace vramtrack {

// The runtime function that the program called, while it runs; nullptr where it called the driver.
extern constinit thread_local const char* t_api __attribute__((tls_model("initial-exec")));

// Set by allocations, cleared by the next kernel launch of the thread, which is then recorded.
extern constinit thread_local bool t_allocated __attribute__((tls_model("initial-exec")));

class ApiTag {
 public:
  explicit ApiTag(const char* name) : outer_(t_api) {
    if (outer_ == nullptr) t_api = name;
  }
  ~ApiTag() { t_api = outer_; }
  ApiTag(const ApiTag&) = delete;
  ApiTag& operator=(const ApiTag&) = delete;

 private:
  const char* outer_;
};

// One call of a hooked driver function, from its beginning to its end.
struct Call {
  const char* function;
};

// With the stack of the caller.
void emit(const Call& call, Event& event);
// Without: for what follows from a call rather than being one.
void emit_without_stack(const Call& call, Event& event);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_HOOKS_EMIT_H
