#include "python/natives.h"

#include <vramtrack/annotate.h>
#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "python/heap.h"
#include "record/guard.h"
#include "record/recorder.h"
#include "stack/python_modules.h"

namespace vramtrack {
namespace {

PythonApi g_api;
std::atomic<bool> g_program_counts_steps{false};
PyObject* g_step_watcher = nullptr;  // under the GIL

PyObject* none() {
  g_api.Py_IncRef(g_api.none);
  return g_api.none;
}

PyObject* native_mark(PyObject* /*self*/, PyObject* arguments) {
  const char* name = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "s", &name) == 0) return nullptr;
  if (vramtrack_mark != nullptr) vramtrack_mark(name);
  return none();
}

PyObject* native_push(PyObject* /*self*/, PyObject* arguments) {
  const char* name = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "s", &name) == 0) return nullptr;
  if (vramtrack_push != nullptr) vramtrack_push(name);
  return none();
}

PyObject* native_pop(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  if (vramtrack_pop != nullptr) vramtrack_pop();
  return none();
}

PyObject* native_step(PyObject* /*self*/, PyObject* arguments) {
  unsigned long long n = 0;
  if (g_api.PyArg_ParseTuple(arguments, "K", &n) == 0) return nullptr;
  g_program_counts_steps.store(true, std::memory_order_relaxed);
  if (vramtrack_step != nullptr) vramtrack_step(n);
  if (g_step_watcher != nullptr) return g_api.PyObject_CallObject(g_step_watcher, nullptr);
  return none();
}

PyObject* native_watch_steps(PyObject* /*self*/, PyObject* arguments) {
  PyObject* watcher = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "O", &watcher) == 0) return nullptr;
  g_api.Py_IncRef(watcher);
  if (g_step_watcher != nullptr) g_api.Py_DecRef(g_step_watcher);
  g_step_watcher = watcher;
  return none();
}

PyObject* native_auto_step(PyObject* /*self*/, PyObject* arguments) {
  unsigned long long n = 0;
  if (g_api.PyArg_ParseTuple(arguments, "K", &n) == 0) return nullptr;
  if (!g_program_counts_steps.load(std::memory_order_relaxed) && vramtrack_step != nullptr)
    vramtrack_step(n);
  return none();
}

PyObject* native_label(PyObject* /*self*/, PyObject* arguments) {
  unsigned long long pointer = 0;
  unsigned long long bytes = 0;
  const char* name = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "KKs", &pointer, &bytes, &name) == 0) return nullptr;
  if (vramtrack_label != nullptr)
    vramtrack_label(reinterpret_cast<const void*>(pointer), bytes, name);
  return none();
}

PyObject* native_metadata(PyObject* /*self*/, PyObject* arguments) {
  const char* key = nullptr;
  const char* value = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "ss", &key, &value) == 0) return nullptr;
  // Not before the first GPU event: that is when the file comes into being.
  if (tracing()) {
    const Guard guard;
    uint8_t record[1 + 2 * kMaxVarintBytes];
    Writer writer(record);
    writer.byte(static_cast<uint8_t>(EventKind::define_metadata));
    writer.varint(intern_string(std::string_view(key, std::strlen(key))));
    writer.varint(intern_string(std::string_view(value, std::strlen(value))));
    write_definition(record, writer.size());
  }
  return none();
}

PyObject* native_name_module(PyObject* /*self*/, PyObject* arguments) {
  unsigned long long object = 0;
  const char* name = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "Ks", &object, &name) == 0) return nullptr;
  if (tracing()) {
    const Guard guard;
    name_module(object, intern_string(std::string_view(name, std::strlen(name))));
  }
  return none();
}

PyObject* native_types_of(PyObject* /*self*/, PyObject* arguments) {
  PyObject* list_all = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "O", &list_all) == 0) return nullptr;
  return distinct_types(g_api, list_all);
}

PyObject* native_objects_of(PyObject* /*self*/, PyObject* arguments) {
  PyObject* list_all = nullptr;
  PyObject* types = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "OO", &list_all, &types) == 0) return nullptr;
  return objects_of_types(g_api, list_all, types);
}

PyObject* native_epoch(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  return g_api.PyLong_FromUnsignedLongLong(tracing() ? recording_epoch() + 1ULL : 0ULL);
}

constinit PyMethodDef g_methods[] = {
    {"mark", native_mark, kMethVarargs, nullptr},
    {"push", native_push, kMethVarargs, nullptr},
    {"pop", native_pop, kMethVarargs, nullptr},
    {"step", native_step, kMethVarargs, nullptr},
    {"label", native_label, kMethVarargs, nullptr},
    {"auto_step", native_auto_step, kMethVarargs, nullptr},
    {"watch_steps", native_watch_steps, kMethVarargs, nullptr},
    {"metadata", native_metadata, kMethVarargs, nullptr},
    {"name_module", native_name_module, kMethVarargs, nullptr},
    {"types_of", native_types_of, kMethVarargs, nullptr},
    {"objects_of", native_objects_of, kMethVarargs, nullptr},
    {"epoch", native_epoch, kMethVarargs, nullptr},
};

}  // namespace

PyObject* make_natives(const PythonApi& api) {
  g_api = api;
  PyObject* natives = api.PyDict_New();
  if (natives == nullptr) return nullptr;
  for (PyMethodDef& method : g_methods) {
    PyObject* function = api.PyCFunction_NewEx(&method, nullptr, nullptr);
    const bool stored =
        function != nullptr && api.PyDict_SetItemString(natives, method.name, function) == 0;
    if (function != nullptr) api.Py_DecRef(function);
    if (!stored) {
      api.Py_DecRef(natives);
      return nullptr;
    }
  }
  return natives;
}

}  // namespace vramtrack
