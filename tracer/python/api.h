// The part of Python's C API that the helper uses, looked up in the process: the shim links no
// Python. One table makes the declarations and the look-up.
#ifndef VRAMTRACK_TRACER_PYTHON_API_H
#define VRAMTRACK_TRACER_PYTHON_API_H

#include <cstddef>

namespace vramtrack {

struct PyObject;

// Of Python's methodobject.h; the layout has been the same since Python 3.0.
struct PyMethodDef {
  const char* name;
  PyObject* (*function)(PyObject* self, PyObject* arguments);
  int flags;
  const char* doc;
};
inline constexpr int kMethVarargs = 1;
inline constexpr int kFileInput = 257;  // Py_file_input

using AuditHook = int (*)(const char* event, PyObject* arguments, void* data);
using PendingCall = int (*)(void* data);

// name, result, parameters. A result or a list of parameters cannot stand in parentheses of its
// own. NOLINTBEGIN(bugprone-macro-parentheses)
#define VRAMTRACK_PYTHON_FUNCTIONS(X)                                   \
  X(PySys_AddAuditHook, int, (AuditHook, void*))                        \
  X(Py_AddPendingCall, int, (PendingCall, void*))                       \
  X(Py_IsInitialized, int, ())                                          \
  X(PyTuple_GetItem, PyObject*, (PyObject*, ptrdiff_t))                 \
  X(PyTuple_Size, ptrdiff_t, (PyObject*))                               \
  X(PyUnicode_CompareWithASCIIString, int, (PyObject*, const char*))    \
  X(PyCFunction_NewEx, PyObject*, (PyMethodDef*, PyObject*, PyObject*)) \
  X(PyImport_AddModule, PyObject*, (const char*))                       \
  X(PyModule_GetDict, PyObject*, (PyObject*))                           \
  X(PyDict_New, PyObject*, ())                                          \
  X(PyDict_SetItemString, int, (PyObject*, const char*, PyObject*))     \
  X(PyDict_GetItemString, PyObject*, (PyObject*, const char*))          \
  X(PyDict_DelItemString, int, (PyObject*, const char*))                \
  X(PyImport_GetModuleDict, PyObject*, ())                              \
  X(PyEval_GetBuiltins, PyObject*, ())                                  \
  X(Py_CompileString, PyObject*, (const char*, const char*, int))       \
  X(PyEval_EvalCode, PyObject*, (PyObject*, PyObject*, PyObject*))      \
  X(PyObject_CallObject, PyObject*, (PyObject*, PyObject*))             \
  X(PyLong_FromUnsignedLongLong, PyObject*, (unsigned long long))       \
  X(PyUnicode_FromString, PyObject*, (const char*))                     \
  X(PyList_New, PyObject*, (ptrdiff_t))                                 \
  X(PyList_Size, ptrdiff_t, (PyObject*))                                \
  X(PyList_GetItem, PyObject*, (PyObject*, ptrdiff_t))                  \
  X(PyList_Append, int, (PyObject*, PyObject*))                         \
  X(PyList_Reverse, int, (PyObject*))                                   \
  X(PyObject_GetAttrString, PyObject*, (PyObject*, const char*))        \
  X(PyObject_IS_GC, int, (PyObject*))                                   \
  X(Py_BuildValue, PyObject*, (const char*, ...))                       \
  X(PyErr_Clear, void, ())                                              \
  X(PyErr_Occurred, PyObject*, ())                                      \
  X(PyErr_ExceptionMatches, int, (PyObject*))                           \
  X(PyArg_ParseTuple, int, (PyObject*, const char*, ...))               \
  X(Py_IncRef, void, (PyObject*))                                       \
  X(Py_DecRef, void, (PyObject*))

struct PythonApi {
#define VRAMTRACK_DECLARE(name, result, parameters) result(*name) parameters;
  VRAMTRACK_PYTHON_FUNCTIONS(VRAMTRACK_DECLARE)
#undef VRAMTRACK_DECLARE
  // NOLINTEND(bugprone-macro-parentheses)
  PyObject* none;             // &_Py_NoneStruct
  PyObject** exception_type;  // &PyExc_Exception
};

// False where the process has no Python, or one without some of these.
bool find_python_api(PythonApi& api);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_API_H
