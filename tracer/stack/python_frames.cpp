#include "stack/python_frames.h"

#include <atomic>
#include <cstring>

#include "stack/modules.h"
#include "stack/python_code.h"
#include "stack/python_modules.h"

namespace vramtrack {
namespace {

std::atomic<const Python*> g_python{nullptr};
constinit Python g_found{};  // filled by a constructor: nothing may initialise it afterwards

template <typename T>
T read(uintptr_t base, size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(base + offset), sizeof value);
  return value;
}

unsigned python_minor() {
  if (const Symbol version = find_exported("Py_Version"); version.address != 0) {
    const auto hex = read<unsigned long>(version.address, 0);
    return hex >> 24 == 3 ? hex >> 16 & 0xff : 0;
  }
  const Symbol get_version = find_exported("Py_GetVersion");
  if (get_version.address == 0) return 0;
  const char* text = reinterpret_cast<const char* (*)()>(get_version.address)();
  if (std::strncmp(text, "3.", 2) != 0) return 0;
  unsigned minor = 0;
  for (text += 2; *text >= '0' && *text <= '9'; ++text)
    minor = minor * 10 + static_cast<unsigned>(*text - '0');
  return minor;
}

class Output {
 public:
  Output(const Python& python, PythonEntry* entries, size_t max)
      : python_(python), entries_(entries), max_(max) {}

  // `first_local` is only compared, never followed: it may be stale, or no object at all.
  bool frame(uintptr_t code, int64_t offset, uintptr_t first_local) {
    const CodeId known = code_id(python_, code);
    if (known.is_method && walk_.module == 0)
      walk_.module =
          known.calls_module ? called_module_name(first_local) : module_name(first_local);
    return add({known.id, offset < 0 ? 0 : static_cast<int32_t>(offset), false});
  }
  bool boundary(uintptr_t address) { return add({address, 0, true}); }
  [[nodiscard]] const PythonWalk& walk() const { return walk_; }

 private:
  bool add(const PythonEntry& entry) {
    if (walk_.count == max_) {
      walk_.cut = true;
      return false;
    }
    entries_[walk_.count++] = entry;
    return true;
  }

  const Python& python_;
  PythonEntry* entries_;
  size_t max_;
  PythonWalk walk_;
};

// 3.9 and 3.10: a frame object per call, each run by a call of the loop of its own.
void walk_frame_objects(const PythonLayout& layout, uintptr_t thread, Output& out) {
  uintptr_t cframe = layout.thread_cframe ? read<uintptr_t>(thread, layout.thread_cframe) : 0;
  const int unit = layout.minor >= 10 ? 2 : 1;
  for (uintptr_t frame = read<uintptr_t>(thread, layout.thread_frame); frame != 0;
       frame = read<uintptr_t>(frame, layout.frame_previous)) {
    const int index = read<int>(frame, layout.frame_instruction);
    if (!out.frame(read<uintptr_t>(frame, layout.frame_code), int64_t{index} * unit,
                   read<uintptr_t>(frame, layout.frame_locals)))
      return;
    if (!out.boundary(cframe)) return;
    if (cframe != 0) cframe = read<uintptr_t>(cframe, layout.cframe_previous);
  }
}

// 3.11 on: a call of the loop runs several frames. 3.11 flags the outermost of them and has a
// _PyCFrame per call; later versions end each run with a frame of the loop's own on the C stack.
void walk_interpreter_frames(const Python& python, uintptr_t thread, Output& out) {
  const PythonLayout& layout = python.layout;
  uintptr_t cframe = 0;
  uintptr_t frame = 0;
  if (layout.thread_cframe != 0) {
    cframe = read<uintptr_t>(thread, layout.thread_cframe);
    if (cframe != 0) frame = read<uintptr_t>(cframe, layout.cframe_frame);
  } else {
    frame = read<uintptr_t>(thread, layout.thread_frame);
  }
  const uintptr_t untag = layout.minor >= 14 ? ~uintptr_t{7} : ~uintptr_t{0};
  for (; frame != 0; frame = read<uintptr_t>(frame, layout.frame_previous)) {
    if (layout.frame_owner != 0 && read<uint8_t>(frame, layout.frame_owner) >= 3) {
      if (!out.boundary(frame)) return;
      continue;
    }
    const uintptr_t code = read<uintptr_t>(frame, layout.frame_code) & untag;
    if (code != 0 && read<uintptr_t>(code, kObjectType) == python.code_type) {
      const auto instruction = read<uintptr_t>(frame, layout.frame_instruction);
      const auto offset = static_cast<int64_t>(instruction - (code + layout.code_instructions));
      if (!out.frame(code, offset, read<uintptr_t>(frame, layout.frame_locals) & untag)) return;
    }
    if (layout.frame_is_entry != 0 && read<uint8_t>(frame, layout.frame_is_entry) != 0) {
      if (!out.boundary(cframe)) return;
      if (cframe != 0) cframe = read<uintptr_t>(cframe, layout.cframe_previous);
    }
  }
}

}  // namespace

void find_python() {
  if (g_python.load(std::memory_order_acquire) != nullptr) return;
  const Symbol thread_state = find_exported("PyGILState_GetThisThreadState");
  const Symbol code_type = find_exported("PyCode_Type");
  if (thread_state.address == 0 || code_type.address == 0) return;
  static std::atomic<bool> looking{false};
  if (looking.exchange(true)) return;

  const Symbol runtime = find_exported("_PyRuntime");
  const Symbol loop = find_exported("_PyEval_EvalFrameDefault");
  Python found{};
  if (!find_python_layout(python_minor(), reinterpret_cast<const void*>(runtime.address),
                          found.layout))
    return;
  found.thread_state = reinterpret_cast<void* (*)()>(thread_state.address);
  found.code_type = code_type.address;
  found.loop_begin = loop.address;
  found.loop_end = loop.address + loop.size;
  g_found = found;
  watch_code_objects(g_found);
  g_python.store(&g_found, std::memory_order_release);
}

const Python* python() {
  return g_python.load(std::memory_order_acquire);
}

PythonWalk walk_python(const Python& python, PythonEntry* entries, size_t max) {
  Output out(python, entries, max);
  const auto thread = reinterpret_cast<uintptr_t>(python.thread_state());
  if (thread != 0) {
    if (python.layout.minor <= 10)
      walk_frame_objects(python.layout, thread, out);
    else
      walk_interpreter_frames(python, thread, out);
  }
  return out.walk();
}

}  // namespace vramtrack
