#include "python/heap.h"

#include <cstdint>
#include <cstring>

#include "record/pages.h"
#include "stack/python_layout.h"

namespace vramtrack {
namespace {

PyObject* type_of(PyObject* object) {
  PyObject* type = nullptr;
  std::memcpy(&type, reinterpret_cast<const char*>(object) + kObjectType, sizeof(uintptr_t));
  return type;
}

// A set of addresses. Full at half its places: the types beyond are then not seen.
class AddressSet {
 public:
  AddressSet() : places_(static_cast<PyObject**>(map_pages(kBytes))) {}
  ~AddressSet() {
    if (places_ != nullptr) unmap_pages(places_, kBytes);
  }
  AddressSet(const AddressSet&) = delete;
  AddressSet& operator=(const AddressSet&) = delete;

  // True where it was not in the set and is now.
  bool insert(PyObject* address) {
    PyObject** place = find(address);
    if (place == nullptr || *place == address || count_ == kPlaces / 2) return false;
    *place = address;
    ++count_;
    return true;
  }
  bool contains(PyObject* address) {
    PyObject** place = find(address);
    return place != nullptr && *place == address;
  }

 private:
  static constexpr size_t kPlaces = 1 << 16;
  static constexpr size_t kBytes = kPlaces * sizeof(uintptr_t);

  PyObject** find(PyObject* address) {
    if (places_ == nullptr) return nullptr;
    size_t at = reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15ULL >> 48;
    while (places_[at] != nullptr && places_[at] != address) at = (at + 1) % kPlaces;
    return &places_[at];
  }

  PyObject** places_;
  size_t count_ = 0;
};

// A list of those objects, or of their types, that `wanted` accepts.
template <class Wanted>
PyObject* select(const PythonApi& api, PyObject* list_all, Wanted wanted) {
  PyObject* selected = api.PyList_New(0);
  PyObject* all = selected == nullptr ? nullptr : api.PyObject_CallObject(list_all, nullptr);
  if (all == nullptr) {
    if (selected != nullptr) api.Py_DecRef(selected);
    return nullptr;
  }
  const ptrdiff_t count = api.PyList_Size(all);
  bool good = true;
  for (ptrdiff_t i = 0; i < count && good; ++i) {
    PyObject* chosen = wanted(api.PyList_GetItem(all, i));
    if (chosen != nullptr) good = api.PyList_Append(selected, chosen) == 0;
  }
  api.Py_DecRef(all);
  if (good) return selected;
  api.Py_DecRef(selected);
  return nullptr;
}

}  // namespace

PyObject* distinct_types(const PythonApi& api, PyObject* list_all) {
  AddressSet seen;
  return select(api, list_all, [&seen](PyObject* object) {
    PyObject* type = type_of(object);
    return seen.insert(type) ? type : nullptr;
  });
}

PyObject* objects_of_types(const PythonApi& api, PyObject* list_all, PyObject* types) {
  AddressSet wanted;
  const ptrdiff_t count = api.PyList_Size(types);
  for (ptrdiff_t i = 0; i < count; ++i) wanted.insert(api.PyList_GetItem(types, i));
  if (count < 0) return nullptr;
  return select(api, list_all, [&wanted](PyObject* object) {
    return wanted.contains(type_of(object)) ? object : nullptr;
  });
}

}  // namespace vramtrack
