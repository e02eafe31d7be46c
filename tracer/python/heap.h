// Searches of Python's heap, for the helper.
//
// In C, because the list of all objects must be gone before another thread can run Python: it also
// holds tuples that are still being built, and CPython raises SystemError when such a tuple has to
// grow while somebody else holds a reference to it. Nothing here gives up the GIL once the list is
// made.
#ifndef VRAMTRACK_TRACER_PYTHON_HEAP_H
#define VRAMTRACK_TRACER_PYTHON_HEAP_H

#include "python/api.h"

namespace vramtrack {

// `list_all` is gc.get_objects. New lists; nullptr with a Python error set.
PyObject* distinct_types(const PythonApi& api, PyObject* list_all);
PyObject* objects_of_types(const PythonApi& api, PyObject* list_all, PyObject* types);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_HEAP_H
