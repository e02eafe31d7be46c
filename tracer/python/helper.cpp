#include "python/helper.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "python/api.h"
#include "python/natives.h"
#include "python/sources.h"
#include "record/live_blocks.h"
#include "stack/python_modules.h"
#include "stack/stack.h"

namespace vramtrack {
namespace {

// Allocations between two runs of the helper; it limits its own share of the time besides. At the
// beginning, while models are built and moved, it is asked more often.
constexpr uint32_t kTickInterval = 1024;
constexpr uint32_t kFirstTicks[] = {64, 128, 256, 512};

constinit PythonApi g_api{};
std::atomic<bool> g_started{false};  // g_api is complete
std::atomic<bool> g_pending{false};  // Python was asked, and has not called yet
std::atomic<uint32_t> g_ticks{0};
PyObject* g_tick = nullptr;     // the helper's function; under the GIL
bool g_loading_failed = false;  // under the GIL

// False with an error set.
bool run_source(const char* source, const char* file, PyObject* globals) {
  if (g_api.PyDict_GetItemString(globals, "__builtins__") == nullptr &&
      g_api.PyDict_SetItemString(globals, "__builtins__", g_api.PyEval_GetBuiltins()) != 0)
    return false;
  PyObject* code = g_api.Py_CompileString(source, file, kFileInput);
  if (code == nullptr) return false;
  PyObject* result = g_api.PyEval_EvalCode(code, globals, globals);
  g_api.Py_DecRef(code);
  if (result == nullptr) return false;
  g_api.Py_DecRef(result);
  return true;
}

bool give_natives(PyObject* globals) {
  PyObject* natives = make_natives(g_api);
  if (natives == nullptr) return false;
  const bool given = g_api.PyDict_SetItemString(globals, "_native", natives) == 0;
  g_api.Py_DecRef(natives);
  return given;
}

// Python is about to look for a module of this name. Where there is one now, it looks no further.
void provide_module(const char* name, const char* source, const char* file) {
  PyObject* modules = g_api.PyImport_GetModuleDict();
  if (modules == nullptr || g_api.PyDict_GetItemString(modules, name) != nullptr) return;
  PyObject* module = g_api.PyImport_AddModule(name);
  if (module != nullptr) {
    PyObject* globals = g_api.PyModule_GetDict(module);
    if (give_natives(globals) && run_source(source, file, globals)) return;
  }
  g_api.PyErr_Clear();
  if (module != nullptr && g_api.PyDict_DelItemString(modules, name) != 0) g_api.PyErr_Clear();
}

int on_audit_event(const char* event, PyObject* arguments, void* /*data*/) {
  if (event[0] != 'i' || std::strcmp(event, "import") != 0) return 0;
  PyObject* name = g_api.PyTuple_GetItem(arguments, 0);
  if (name == nullptr) {
    g_api.PyErr_Clear();
  } else if (g_api.PyUnicode_CompareWithASCIIString(name, "vramtrack") == 0) {
    provide_module("vramtrack", kModuleSource, "<vramtrack>");
  } else if (g_api.PyUnicode_CompareWithASCIIString(name, "vramtrack._traced") == 0) {
    // The package as it is installed, found by Python itself, asks for our functions.
    provide_module("vramtrack._traced", "", "<vramtrack>");
  }
  return 0;
}

// Ends a call into Python. An ordinary exception is ours and stays here; KeyboardInterrupt and
// SystemExit came while we happened to run and belong to the program.
int settle(PyObject* result) {
  if (result != nullptr) {
    g_api.Py_DecRef(result);
    return 0;
  }
  if (g_api.PyErr_Occurred() == nullptr) return 0;
  if (g_api.PyErr_ExceptionMatches(*g_api.exception_type) == 0) return -1;
  g_api.PyErr_Clear();
  return 0;
}

bool load_helper() {
  PyObject* globals = g_api.PyDict_New();
  if (globals == nullptr) return false;
  PyObject* name = g_api.PyUnicode_FromString("vramtrack_helper");
  if (name != nullptr) {
    g_api.PyDict_SetItemString(globals, "__name__", name);
    g_api.Py_DecRef(name);
  }
  if (give_natives(globals) && run_source(kLabelsSource, "<vramtrack labels>", globals) &&
      run_source(kSteadyStepsSource, "<vramtrack steady_steps>", globals) &&
      run_source(kHelperSource, "<vramtrack helper>", globals)) {
    g_tick = g_api.PyDict_GetItemString(globals, "tick");
    if (g_tick != nullptr) g_api.Py_IncRef(g_tick);
  }
  g_api.Py_DecRef(globals);
  return g_tick != nullptr;
}

// In Python's main thread, between two bytecodes, with the GIL.
int run_helper(void* /*data*/) {
  g_pending.store(false, std::memory_order_release);
  if (g_loading_failed) return 0;
  if (g_tick == nullptr && !load_helper()) {
    g_loading_failed = true;
    return settle(nullptr);
  }
  return settle(g_api.PyObject_CallObject(g_tick, nullptr));
}

bool wanted() {
  const char* setting = std::getenv("VRAMTRACK_HELPER");
  return setting == nullptr || (std::strcmp(setting, "off") != 0 && std::strcmp(setting, "0") != 0);
}

// With each stack that is captured, inside hooks: now and then it asks Python to run the helper.
void count_capture() {
  const uint32_t n = g_ticks.fetch_add(1, std::memory_order_relaxed);
  bool due = n % kTickInterval == 0;
  for (const uint32_t first : kFirstTicks) due = due || n == first;
  if (!due) return;
  if (g_api.Py_IsInitialized() == 0) return;
  if (g_pending.exchange(true, std::memory_order_acquire)) return;
  if (g_api.Py_AddPendingCall(run_helper, nullptr) != 0)
    g_pending.store(false, std::memory_order_release);
}

}  // namespace

void python_helper_start_if_possible() {
  if (g_started.load(std::memory_order_acquire) || !wanted()) return;
  static std::atomic<bool> starting{false};
  if (starting.exchange(true)) return;
  if (find_python_api(g_api)) {
    // An audit hook that is added later would itself be an audited event, and needs the GIL: a
    // process that was running Python before us has to install the module `vramtrack` if it wants
    // it.
    if (g_api.Py_IsInitialized() == 0) g_api.PySys_AddAuditHook(on_audit_event, nullptr);
    g_started.store(true, std::memory_order_release);
    on_capture(count_capture);
    await_module_names();
    live_blocks_enable();
  }
  starting.store(false);
}

void python_helper_after_fork_child() {
  g_pending.store(false, std::memory_order_relaxed);
  g_ticks.store(0, std::memory_order_relaxed);
}

}  // namespace vramtrack
