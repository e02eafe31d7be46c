#include "hooks/emit.h"

#include "hooks/device_ranges.h"
#include "record/recorder.h"
#include "stack/stack.h"

namespace vramtrack {

thread_local constinit const char* t_api = nullptr;
thread_local constinit bool t_allocated = false;

void emit_without_stack(const Call& call, Event& event) {
  note_device_range(event);
  event.api = intern_string(t_api != nullptr ? t_api : call.function);
  record(event);
}

void emit(const Call& call, Event& event) {
  event.stack = capture_stack();
  emit_without_stack(call, event);
}

}  // namespace vramtrack
