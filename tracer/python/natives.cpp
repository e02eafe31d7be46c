#include "python/natives.h"

#include <vramtrack/annotate.h>
#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "python/heap.h"
#include "python/object_graph.h"
#include "python/sources.h"
#include "record/guard.h"
#include "record/live_blocks.h"
#include "record/live_totals.h"
#include "record/recorder.h"
#include "stack/python_modules.h"

namespace vramtrack {
namespace {

PythonApi g_api;
std::atomic<bool> g_program_counts_steps{false};
PyObject* g_step_watcher = nullptr;  // under the GIL
PyObject* g_answer = nullptr;

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

// Keeps a function of the helper's in `kept`.
PyObject* keep_function(PyObject* arguments, PyObject*& kept) {
  PyObject* function = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "O", &function) == 0) return nullptr;
  g_api.Py_IncRef(function);
  if (kept != nullptr) g_api.Py_DecRef(kept);
  kept = function;
  return none();
}

PyObject* native_watch_steps(PyObject* /*self*/, PyObject* arguments) {
  return keep_function(arguments, g_step_watcher);
}

PyObject* native_answer(PyObject* /*self*/, PyObject* arguments) {
  return keep_function(arguments, g_answer);
}

PyObject* native_request(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  return g_answer == nullptr ? none() : g_api.PyObject_CallObject(g_answer, nullptr);
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
    name_module(object, std::string_view(name, std::strlen(name)));
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

// The blocks that `find` chooses, at most two of each stack.
PyObject* list_blocks(PyObject* arguments, size_t (*find)(OldBlock*, size_t, unsigned)) {
  constexpr size_t kMost = 128;
  unsigned most = 0;
  if (g_api.PyArg_ParseTuple(arguments, "I", &most) == 0) return nullptr;
  OldBlock blocks[kMost];
  size_t count = 0;
  {
    const Guard guard;
    count = find(blocks, most < kMost ? most : kMost, 2);
  }
  PyObject* list = g_api.PyList_New(0);
  for (size_t i = 0; i < count && list != nullptr; ++i) {
    PyObject* item = g_api.Py_BuildValue(
        "(KKII)", static_cast<unsigned long long>(blocks[i].address),
        static_cast<unsigned long long>(blocks[i].size), blocks[i].stack, blocks[i].age);
    if (item == nullptr || g_api.PyList_Append(list, item) != 0) {
      g_api.Py_DecRef(list);
      list = nullptr;
    }
    if (item != nullptr) g_api.Py_DecRef(item);
  }
  return list;
}

PyObject* native_growing(PyObject* /*self*/, PyObject* arguments) {
  return list_blocks(arguments, growing_blocks);
}

PyObject* native_largest(PyObject* /*self*/, PyObject* arguments) {
  return list_blocks(arguments, blocks_of_largest);
}

PyObject* native_memory(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  PyObject* list = g_api.PyList_New(0);
  for (size_t device = 0; device < kCountedDevices && list != nullptr; ++device) {
    const LiveTotal total = live_total(device);
    PyObject* item = g_api.Py_BuildValue("(LL)", static_cast<long long>(total.bytes),
                                         static_cast<long long>(total.most));
    if (item == nullptr || g_api.PyList_Append(list, item) != 0) {
      g_api.Py_DecRef(list);
      list = nullptr;
    }
    if (item != nullptr) g_api.Py_DecRef(item);
  }
  return list;
}

PyObject* native_reset_peak(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  reset_most_live();
  return none();
}

PyObject* native_ways(PyObject* /*self*/, PyObject* arguments) {
  PyObject* roots = nullptr;
  PyObject* more = nullptr;
  PyObject* later = nullptr;
  int enter_later = 0;
  PyObject* targets = nullptr;
  unsigned long long limit = 0;
  if (g_api.PyArg_ParseTuple(arguments, "OOOiOK", &roots, &more, &later, &enter_later, &targets,
                             &limit) == 0)
    return nullptr;
  return find_ways(g_api, roots, more, later, enter_later != 0, targets, limit);
}

PyObject* native_reachable(PyObject* /*self*/, PyObject* arguments) {
  PyObject* roots = nullptr;
  PyObject* more = nullptr;
  PyObject* later = nullptr;
  PyObject* types = nullptr;
  unsigned long long limit = 0;
  if (g_api.PyArg_ParseTuple(arguments, "OOOOK", &roots, &more, &later, &types, &limit) == 0)
    return nullptr;
  return find_reachable(g_api, roots, more, later, types, limit);
}

PyObject* native_referrers(PyObject* /*self*/, PyObject* arguments) {
  PyObject* list_all = nullptr;
  PyObject* object = nullptr;
  PyObject* excluded = nullptr;
  unsigned long long limit = 0;
  if (g_api.PyArg_ParseTuple(arguments, "OOOK", &list_all, &object, &excluded, &limit) == 0)
    return nullptr;
  if (g_api.PyList_Append(excluded, arguments) != 0) return nullptr;  // it refers to `object`
  return find_referrers(g_api, list_all, object, excluded, limit);
}

PyObject* native_variables(PyObject* /*self*/, PyObject* arguments) {
  PyObject* frame = nullptr;
  if (g_api.PyArg_ParseTuple(arguments, "O", &frame) == 0) return nullptr;
  return local_variables(g_api, frame);
}

PyObject* native_holder(PyObject* /*self*/, PyObject* arguments) {
  unsigned long long address = 0;
  unsigned long long bytes = 0;
  unsigned stack = 0;
  const char* text = nullptr;
  int at_oom = 0;
  if (g_api.PyArg_ParseTuple(arguments, "KKIsi", &address, &bytes, &stack, &text, &at_oom) == 0)
    return nullptr;
  if (!tracing()) return none();
  const Guard guard;
  Event event{.kind = EventKind::holder, .address = address, .size = bytes, .stack = stack};
  event.text = intern_string(std::string_view(text, std::strlen(text)));
  if (at_oom != 0) event.flags = kEventAtOom;
  record(event);
  return none();
}

PyObject* native_holders_source(PyObject* /*self*/, PyObject* arguments) {
  if (g_api.PyArg_ParseTuple(arguments, "") == 0) return nullptr;
  return g_api.PyUnicode_FromString(kHoldersSource);
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
    {"growing", native_growing, kMethVarargs, nullptr},
    {"largest", native_largest, kMethVarargs, nullptr},
    {"memory", native_memory, kMethVarargs, nullptr},
    {"reset_peak", native_reset_peak, kMethVarargs, nullptr},
    {"ways", native_ways, kMethVarargs, nullptr},
    {"reachable", native_reachable, kMethVarargs, nullptr},
    {"referrers", native_referrers, kMethVarargs, nullptr},
    {"variables", native_variables, kMethVarargs, nullptr},
    {"holder", native_holder, kMethVarargs, nullptr},
    {"answer", native_answer, kMethVarargs, nullptr},
    {"request", native_request, kMethVarargs, nullptr},
    {"holders_source", native_holders_source, kMethVarargs, nullptr},
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
