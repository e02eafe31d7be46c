#include "python/api.h"

#include "stack/modules.h"

namespace vramtrack {

bool find_python_api(PythonApi& api) {
  bool complete = true;
  // NOLINTBEGIN(bugprone-macro-parentheses): see api.h
  // The type is spelt twice only here: every entry is found under its own name.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define VRAMTRACK_FIND(name, result, parameters)                                     \
  if (complete) {                                                                    \
    api.name = reinterpret_cast<result(*) parameters>(find_exported(#name).address); \
    complete = api.name != nullptr;                                                  \
  }
  VRAMTRACK_PYTHON_FUNCTIONS(VRAMTRACK_FIND)
#undef VRAMTRACK_FIND
  // NOLINTEND(bugprone-macro-parentheses)
  api.none = reinterpret_cast<PyObject*>(find_exported("_Py_NoneStruct").address);
  api.exception_type = reinterpret_cast<PyObject**>(find_exported("PyExc_Exception").address);
  return complete && api.none != nullptr && api.exception_type != nullptr;
}

}  // namespace vramtrack
