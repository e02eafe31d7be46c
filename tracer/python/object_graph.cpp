#include "python/object_graph.h"

#include <time.h>

#include <cstring>
#include <initializer_list>

#include "record/pages.h"
#include "stack/python_frames.h"
#include "stack/python_layout.h"

namespace vramtrack {
namespace {

using Visit = int (*)(PyObject*, void*);
using Traverse = int (*)(PyObject*, Visit, void*);

// Of PyTypeObject; the same in every version of Python 3.
constexpr size_t kTypeFlags = 168;
constexpr size_t kTypeTraverse = 184;
constexpr unsigned long kHaveGc = 1UL << 14;
constexpr unsigned long kTuple = 1UL << 26;
constexpr unsigned long kType = 1UL << 31;
constexpr uint32_t kNobody = ~0U;
constexpr size_t kMostFound = 1 << 20;
constexpr size_t kDeepest = 12;

template <class T>
T field(const void* object, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset,
              sizeof(T));  // NOLINT(bugprone-sizeof-expression)
  return value;
}

bool is_container(const PythonApi& api, PyObject* object) {
  const auto* type = field<void*>(object, kObjectType);
  return (field<unsigned long>(type, kTypeFlags) & kHaveGc) != 0 && api.PyObject_IS_GC(object) != 0;
}

bool is_tuple(PyObject* object) {
  return (field<unsigned long>(field<void*>(object, kObjectType), kTypeFlags) & kTuple) != 0;
}

bool is_type(PyObject* object) {
  return (field<unsigned long>(field<void*>(object, kObjectType), kTypeFlags) & kType) != 0;
}

void traverse(PyObject* object, Visit visit, void* data) {
  const auto function = field<Traverse>(field<void*>(object, kObjectType), kTypeTraverse);
  if (function != nullptr) function(object, visit, data);
}

// In processor time of this thread: on a busy machine the host pays no more than that.
class Deadline {
 public:
  explicit Deadline(uint64_t limit_us) : end_(now_us() + limit_us) {}
  [[nodiscard]] bool passed() const { return now_us() >= end_; }

 private:
  static uint64_t now_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000 +
           static_cast<uint64_t>(now.tv_nsec) / 1000;
  }
  uint64_t end_;
};

// Pages that end with their owner.
class Pages {
 public:
  explicit Pages(size_t bytes) : data_(map_pages(bytes)), bytes_(bytes) {}
  ~Pages() {
    if (data_ != nullptr) unmap_pages(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  void swap(Pages& other) {
    void* const data = data_;
    const size_t bytes = bytes_;
    data_ = other.data_;
    bytes_ = other.bytes_;
    other.data_ = data;
    other.bytes_ = bytes;
  }

 private:
  void* data_;
  size_t bytes_;
};

// Objects that were found, in the order in which they were, each with who led to it.
class Found {
 public:
  struct Entry {
    PyObject* object;
    uint32_t from;
  };

  Found() : entries_(kMostFound * sizeof(Entry)), places_(kFirstPlaces * sizeof(uint32_t)) {}

  [[nodiscard]] bool good() const {
    return entries_.data() != nullptr && places_.data() != nullptr;
  }
  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] const Entry& operator[](uint32_t index) const {
    return static_cast<const Entry*>(entries_.data())[index];
  }

  // False where it is known already, or there is no room.
  bool add(PyObject* object, uint32_t from) {
    if (count_ == kMostFound || (count_ >= capacity_ / 2 && !grow())) return false;
    uint32_t& place = place_of(object);
    if (place != 0) return false;
    static_cast<Entry*>(entries_.data())[count_] = {object, from};
    place = ++count_;
    return true;
  }
  // Its index, or kNobody.
  uint32_t find(PyObject* object) { return place_of(object) - 1; }

 private:
  static constexpr size_t kFirstPlaces = 1 << 14;

  uint32_t& place_of(PyObject* object) {
    auto* places = static_cast<uint32_t*>(places_.data());
    size_t at = (reinterpret_cast<uintptr_t>(object) * 0x9e3779b97f4a7c15ULL >> 20) % capacity_;
    while (places[at] != 0 && (*this)[places[at] - 1].object != object) at = (at + 1) % capacity_;
    return places[at];
  }

  bool grow() {
    Pages larger(4 * capacity_ * sizeof(uint32_t));
    if (larger.data() == nullptr) return false;
    places_.swap(larger);
    capacity_ *= 4;
    for (uint32_t i = 0; i < count_; ++i) place_of((*this)[i].object) = i + 1;
    return true;
  }

  Pages entries_;
  Pages places_;
  size_t capacity_ = kFirstPlaces;
  uint32_t count_ = 0;
};

// ---- Downwards, breadth first.

struct Descent {
  const PythonApi& api;
  Found found;
  Found barred;   // entered later
  Found targets;  // in their order
  uint32_t missing = 0;
  uint32_t at = 0;
  PyObject* type = nullptr;  // of the object that is being traversed
  bool from_type = false;    // which is a class itself
};

// From an instance to its class, from a class to its bases: ways that hold nothing.
bool is_descent(const Descent& descent, PyObject* object) {
  return object == descent.type || (descent.from_type && (is_type(object) || is_tuple(object)));
}

int visit_downwards(PyObject* object, void* data) {
  auto& descent = *static_cast<Descent*>(data);
  if (is_descent(descent, object) || !is_container(descent.api, object) ||
      descent.barred.find(object) != kNobody)
    return 0;
  if (descent.found.add(object, descent.at) && descent.targets.find(object) != kNobody)
    --descent.missing;
  return 0;
}

template <class Use>
void for_each(const PythonApi& api, PyObject* list, Use use) {
  const ptrdiff_t count = api.PyList_Size(list);
  for (ptrdiff_t i = 0; i < count; ++i) use(api.PyList_GetItem(list, i));
}

void begin_at(Descent& descent, PyObject* list) {
  for_each(descent.api, list, [&](PyObject* root) {
    if (is_container(descent.api, root) && descent.found.add(root, kNobody) &&
        descent.targets.find(root) != kNobody)
      --descent.missing;
  });
}

void descend(Descent& descent, const Deadline& deadline) {
  for (; descent.at < descent.found.count() && descent.missing != 0; ++descent.at) {
    if (descent.at % 256 == 255 && deadline.passed()) return;
    PyObject* object = descent.found[descent.at].object;
    descent.type = field<PyObject*>(object, kObjectType);
    descent.from_type = is_type(object);
    traverse(object, visit_downwards, &descent);
  }
}

// A new list of the way to `index`, or nullptr with an error set.
PyObject* way_to(const PythonApi& api, const Found& found, uint32_t index, bool from_root) {
  PyObject* way = api.PyList_New(0);
  bool good = way != nullptr;
  for (; good && index != kNobody; index = found[index].from)
    good = api.PyList_Append(way, found[index].object) == 0;
  if (good && from_root) good = api.PyList_Reverse(way) == 0;
  if (good) return way;
  if (way != nullptr) api.Py_DecRef(way);
  return nullptr;
}

bool append_and_release(const PythonApi& api, PyObject* list, PyObject* item) {
  if (item == nullptr) return false;
  const bool good = api.PyList_Append(list, item) == 0;
  api.Py_DecRef(item);
  return good;
}

// ---- Upwards, one pass over all objects for each level.

struct Ascent {
  Found found;  // [0] is the object that is held
  Found excluded;
  uint32_t first = 0;  // of the level that the pass looks for
  uint32_t end = 1;
  uint32_t referred = kNobody;  // what the object that is being traversed refers to
  uint32_t closes = kNobody;
  uint32_t last = 0;
};

int visit_upwards(PyObject* object, void* data) {
  auto& ascent = *static_cast<Ascent*>(data);
  const uint32_t index = ascent.found.find(object);
  if (index != kNobody && index >= ascent.first && index < ascent.end) ascent.referred = index;
  return 0;
}

bool is_below(const Found& found, uint32_t member, uint32_t top) {
  for (uint32_t i = top; i != kNobody; i = found[i].from)
    if (i == member) return true;
  return false;
}

// One level up. False at the end: a cycle, nothing more, or no time.
bool ascend(const PythonApi& api, Ascent& ascent, PyObject* all, const Deadline& deadline,
            bool& complete) {
  const ptrdiff_t count = api.PyList_Size(all);
  for (ptrdiff_t i = 0; i < count && ascent.closes == kNobody; ++i) {
    if (i % 1024 == 0 && deadline.passed()) return complete = false;
    PyObject* object = api.PyList_GetItem(all, i);
    if (object == all || ascent.excluded.find(object) != kNobody) continue;
    ascent.referred = kNobody;
    traverse(object, visit_upwards, &ascent);
    if (ascent.referred == kNobody || ascent.found.add(object, ascent.referred)) continue;
    const uint32_t known = ascent.found.find(object);
    if (known == kNobody || !is_below(ascent.found, known, ascent.referred)) continue;
    ascent.closes = known;
    ascent.last = ascent.referred;
  }
  if (ascent.closes != kNobody || ascent.found.count() == ascent.end) return false;
  ascent.last = ascent.end;
  ascent.first = ascent.end;
  ascent.end = ascent.found.count();
  return true;
}

// The frame of the interpreter behind a frame object; 0 where it is not where it should be.
uintptr_t interpreter_frame(const Python& python, PyObject* frame, PyObject* code) {
  constexpr size_t kFrameOfObject = 24;  // PyFrameObject::f_frame, from 3.11 on
  const bool same = python.layout.minor <= 10;
  const auto inner =
      same ? reinterpret_cast<uintptr_t>(frame) : field<uintptr_t>(frame, kFrameOfObject);
  if (inner == 0 || inner % 8 != 0) return 0;
  const uintptr_t untag = python.layout.minor >= 14 ? ~uintptr_t{7} : ~uintptr_t{0};
  const auto found =
      field<uintptr_t>(reinterpret_cast<void*>(inner), python.layout.frame_code) & untag;
  return found == reinterpret_cast<uintptr_t>(code) ? inner : 0;
}

bool contains(const PythonApi& api, PyObject* tuple, PyObject* item) {
  const ptrdiff_t count = api.PyTuple_Size(tuple);
  for (ptrdiff_t i = 0; i < count; ++i)
    if (api.PyTuple_GetItem(tuple, i) == item) return true;  // names are interned
  return false;
}

// Walks the variables of a frame in the order in which it keeps them.
class Variables {
 public:
  Variables(const PythonApi& api, const Python& python, uintptr_t frame)
      : api_(api), layout_(python.layout), frame_(frame), list_(api.PyList_New(0)) {}

  // Those of a tuple of names; without those that are in `but` as well.
  bool add(PyObject* names, PyObject* but) {
    const ptrdiff_t count = names == nullptr ? -1 : api_.PyTuple_Size(names);
    if (count < 0 || list_ == nullptr) return false;
    for (ptrdiff_t i = 0; i < count; ++i) {
      PyObject* name = api_.PyTuple_GetItem(names, i);
      if (but != nullptr && contains(api_, but, name)) continue;
      const size_t offset = layout_.frame_locals + sizeof(uintptr_t) * slot_++;
      uintptr_t value = field<uintptr_t>(reinterpret_cast<void*>(frame_), offset);
      if (layout_.minor >= 14 && (value & 3) == 3) continue;  // no object but a number
      if (layout_.minor >= 14) value &= ~uintptr_t{7};
      if (value == 0) continue;
      PyObject* pair = api_.Py_BuildValue("(OO)", name, reinterpret_cast<PyObject*>(value));
      if (!append_and_release(api_, list_, pair)) return false;
    }
    return true;
  }
  [[nodiscard]] PyObject* list() const { return list_; }

 private:
  const PythonApi& api_;
  const PythonLayout& layout_;
  uintptr_t frame_;
  PyObject* list_;
  size_t slot_ = 0;
};

}  // namespace

PyObject* find_ways(const PythonApi& api, PyObject* roots, PyObject* more, PyObject* later,
                    bool enter_later, PyObject* targets, uint64_t limit_us) {
  const Deadline deadline(limit_us);
  Descent descent{.api = api};
  PyObject* ways = api.PyList_New(0);
  if (ways == nullptr) return nullptr;
  if (descent.found.good() && descent.barred.good() && descent.targets.good()) {
    for_each(api, targets, [&](PyObject* target) {
      if (descent.targets.add(target, kNobody)) ++descent.missing;
    });
    for_each(api, later, [&](PyObject* object) { descent.barred.add(object, kNobody); });
    begin_at(descent, roots);
    descend(descent, deadline);
    if (descent.missing != 0) begin_at(descent, more);
    descend(descent, deadline);
    if (descent.missing != 0 && enter_later) begin_at(descent, later);
    descend(descent, deadline);
  }
  const ptrdiff_t count = api.PyList_Size(targets);
  for (ptrdiff_t i = 0; i < count; ++i) {
    const uint32_t index = descent.found.find(api.PyList_GetItem(targets, i));
    PyObject* way = index == kNobody ? api.none : way_to(api, descent.found, index, true);
    if (index == kNobody) api.Py_IncRef(api.none);
    if (append_and_release(api, ways, way)) continue;
    api.Py_DecRef(ways);
    return nullptr;
  }
  return ways;
}

PyObject* find_reachable(const PythonApi& api, PyObject* roots, PyObject* more, PyObject* later,
                         PyObject* types, uint64_t limit_us) {
  const Deadline deadline(limit_us);
  Descent descent{.api = api};
  PyObject* reached = api.PyList_New(0);
  if (reached == nullptr || !descent.found.good() || !descent.barred.good() ||
      !descent.targets.good())
    return reached;
  for_each(api, types, [&](PyObject* type) { descent.targets.add(type, kNobody); });
  for_each(api, later, [&](PyObject* object) { descent.barred.add(object, kNobody); });
  descent.missing = kNobody;  // to the end
  begin_at(descent, roots);
  begin_at(descent, more);
  descend(descent, deadline);
  for (uint32_t i = 0; i < descent.found.count(); ++i) {
    PyObject* object = descent.found[i].object;
    if (descent.targets.find(field<PyObject*>(object, kObjectType)) == kNobody) continue;
    if (api.PyList_Append(reached, object) == 0) continue;
    api.Py_DecRef(reached);
    return nullptr;
  }
  return reached;
}

PyObject* find_referrers(const PythonApi& api, PyObject* list_all, PyObject* object,
                         PyObject* excluded, uint64_t limit_us) {
  const Deadline deadline(limit_us);
  Ascent ascent;
  if (!ascent.found.good() || !ascent.excluded.good()) return api.Py_BuildValue("([]ii)", -1, 0);
  for_each(api, excluded, [&](PyObject* one) { ascent.excluded.add(one, kNobody); });
  ascent.excluded.add(excluded, kNobody);
  ascent.found.add(object, kNobody);
  PyObject* all = api.PyObject_CallObject(list_all, nullptr);
  if (all == nullptr) return nullptr;
  bool complete = true;
  for (size_t level = 0; level < kDeepest; ++level)
    if (!ascend(api, ascent, all, deadline, complete)) break;
  if (ascent.closes == kNobody && ascent.last != 0 && is_tuple(ascent.found[ascent.last].object))
    ascent.last = ascent.found[ascent.last].from;  // it may be in the making: see heap.h
  PyObject* way = way_to(api, ascent.found, ascent.last, false);
  api.Py_DecRef(all);
  if (way == nullptr) return nullptr;
  int closes = -1;
  if (api.PyList_Reverse(way) != 0) return nullptr;
  for_each(api, way, [&, i = 0](PyObject* member) mutable {
    if (ascent.closes != kNobody && member == ascent.found[ascent.closes].object) closes = i;
    ++i;
  });
  PyObject* result = api.Py_BuildValue("(Oii)", way, closes, complete ? 1 : 0);
  api.Py_DecRef(way);
  return result;
}

PyObject* local_variables(const PythonApi& api, PyObject* frame) {
  const Python* interpreter = python();
  PyObject* code = interpreter == nullptr ? nullptr : api.PyObject_GetAttrString(frame, "f_code");
  if (code == nullptr) return interpreter == nullptr ? api.PyList_New(0) : nullptr;
  const uintptr_t inner = interpreter_frame(*interpreter, frame, code);
  PyObject* result = nullptr;
  if (inner == 0) {
    result = api.PyList_New(0);
  } else {
    PyObject* names = api.PyObject_GetAttrString(code, "co_varnames");
    PyObject* cells = api.PyObject_GetAttrString(code, "co_cellvars");
    PyObject* free = api.PyObject_GetAttrString(code, "co_freevars");
    Variables variables(api, *interpreter, inner);
    // From 3.11 on an argument that is a cell has one place, not two.
    PyObject* twice = interpreter->layout.minor >= 11 ? names : nullptr;
    const bool good = variables.add(names, nullptr) && variables.add(cells, twice) &&
                      variables.add(free, nullptr);
    for (PyObject* tuple : {names, cells, free})
      if (tuple != nullptr) api.Py_DecRef(tuple);
    result = variables.list();
    if (!good && result != nullptr) {
      api.Py_DecRef(result);
      result = nullptr;
    }
  }
  api.Py_DecRef(code);
  return result;
}

}  // namespace vramtrack
