// Ways through the objects of Python, for the helper: from what the program can name to an object,
// and from an object to what refers to it.
//
// In C, because a search looks at a million objects in 50 ms, and because it must leave no trace:
// it takes no reference while it looks, runs no code but the visitors that the garbage collector
// itself uses (tp_traverse), and does not give up the GIL. Only the objects of the ways that were
// found are handed back. Under the GIL.
#ifndef VRAMTRACK_TRACER_PYTHON_OBJECT_GRAPH_H
#define VRAMTRACK_TRACER_PYTHON_OBJECT_GRAPH_H

#include <cstdint>

#include "python/api.h"

namespace vramtrack {

// For each of the list `targets` the shortest way to it from one of `roots`, as a list of objects,
// both ends included, or None. Where these lead to no more, objects in `more` are roots too, and at
// last, if `enter_later`, those in `later`, which are not entered before. Classes are entered where
// somebody keeps them, not by way of their instances and descendants. Stops after `limit_us` of
// processor time. A new list; nullptr with a Python error set.
PyObject* find_ways(const PythonApi& api, PyObject* roots, PyObject* more, PyObject* later,
                    bool enter_later, PyObject* targets, uint64_t limit_us);

// What can be reached from `roots` and `more` without entering one of `later` and is of one of
// these exact types. A new list.
PyObject* find_reachable(const PythonApi& api, PyObject* roots, PyObject* more, PyObject* later,
                         PyObject* types, uint64_t limit_us);

// Upwards: (way, closes, complete). `way` is a list that begins with `object`; each of its members
// is referred to by the next. `closes` is the index of the member that its last one is referred to
// by: a cycle; or -1. `complete` is false where time ran out. `excluded` are not looked at.
PyObject* find_referrers(const PythonApi& api, PyObject* list_all, PyObject* object,
                         PyObject* excluded, uint64_t limit_us);

// [(name, value)...] of the local variables of a frame object, running or not; cells as such.
PyObject* local_variables(const PythonApi& api, PyObject* frame);

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_PYTHON_OBJECT_GRAPH_H
