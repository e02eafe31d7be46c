// The public API (include/vramtrack/annotate.h). Strong here, weak in the programs that call it.
#include <cstring>

#include "hooks/devices.h"
#include "hooks/emit.h"
#include "hooks/first_contact.h"
#include "record/guard.h"
#include "record/live_blocks.h"
#include "record/process.h"
#include "record/recorder.h"

#define VRAMTRACK_API extern "C" __attribute__((visibility("default")))

namespace vramtrack {
namespace {

void annotate(EventKind kind, const char* name, Event event = {}) {
  const Guard guard;
  if (!guard.outermost() || !ready()) return;
  event.kind = kind;
  if (kind == EventKind::mark) sample_changed_libraries();
  if (name != nullptr) event.text = intern_string({name, strnlen(name, kMaxStringBytes)});
  record(event);
  if (kind == EventKind::mark) sample_memory();
  if (kind == EventKind::step) live_blocks_step();
}

}  // namespace
}  // namespace vramtrack

VRAMTRACK_API void vramtrack_mark(const char* name) {
  vramtrack::annotate(vramtrack::EventKind::mark, name);
}

VRAMTRACK_API void vramtrack_push(const char* name) {
  vramtrack::annotate(vramtrack::EventKind::phase_push, name);
}

VRAMTRACK_API void vramtrack_pop() {
  vramtrack::annotate(vramtrack::EventKind::phase_pop, nullptr);
}

VRAMTRACK_API void vramtrack_step(uint64_t n) {
  vramtrack::Event event;
  event.extra = n;
  vramtrack::annotate(vramtrack::EventKind::step, nullptr, event);
}

VRAMTRACK_API void vramtrack_label(const void* pointer, size_t bytes, const char* name) {
  vramtrack::Event event;
  event.address = reinterpret_cast<uint64_t>(pointer);
  event.size = bytes;
  vramtrack::annotate(vramtrack::EventKind::label, name, event);
}
