// The annotation API: lets a program tell vramtrack what it is doing.
//
// Every function is a weak symbol. Without the tracer in the process the calls do nothing, so a
// program may keep them in production builds and needs to link nothing. All functions may be called
// from any thread; strings are copied before the call returns.
#ifndef VRAMTRACK_ANNOTATE_H
#define VRAMTRACK_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A named instant. `vramtrack report --at mark:NAME` shows the memory at it.
__attribute__((weak)) void vramtrack_mark(const char* name);

// Opens and closes a phase on the calling thread. Phases nest; what is allocated inside belongs to
// the innermost one.
__attribute__((weak)) void vramtrack_push(const char* name);
__attribute__((weak)) void vramtrack_pop(void);

// Begins step n of the job (training step, generated token, request). Process-wide.
__attribute__((weak)) void vramtrack_step(uint64_t n);

// Says what the `bytes` bytes at device address `pointer` are. A name of a category
// ("kv_cache", "parameters", ...) sets the category; any other name is shown as it is. The label
// ends when the memory is freed.
__attribute__((weak)) void vramtrack_label(const void* pointer, size_t bytes, const char* name);

#ifdef __cplusplus
}  // extern "C"
#endif

#ifdef __cplusplus
namespace vramtrack {

inline void mark(const char* name) {
  if (vramtrack_mark) vramtrack_mark(name);
}
inline void push(const char* name) {
  if (vramtrack_push) vramtrack_push(name);
}
inline void pop() {
  if (vramtrack_pop) vramtrack_pop();
}
inline void step(uint64_t n) {
  if (vramtrack_step) vramtrack_step(n);
}
inline void label(const void* pointer, size_t bytes, const char* name) {
  if (vramtrack_label) vramtrack_label(pointer, bytes, name);
}

// A phase for the lifetime of a scope.
class Scope {
 public:
  explicit Scope(const char* name) { push(name); }
  ~Scope() { pop(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
};

}  // namespace vramtrack
#endif

#endif  // VRAMTRACK_ANNOTATE_H
