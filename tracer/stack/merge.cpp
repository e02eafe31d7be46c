#include "stack/merge.h"

namespace vramtrack {
namespace {

// How the end of a run of Python frames is found among the native ones.
enum class Match {
  address,  // the boundary lies inside the loop's native frame: exact, whatever the frame is called
  order,    // the n-th boundary belongs to the n-th native frame of the loop
  none,     // numbers differ: native frames down to the first loop, then all of Python
};

class Merger {
 public:
  Merger(const PythonEntry* python, size_t count, MergedFrame* out, size_t max)
      : python_(python), python_count_(count), out_(out), max_(max) {}

  void native(uintptr_t pc) { put({pc, 0, false}); }
  // The next run of Python frames, without its boundary.
  void run() {
    while (at_ < python_count_ && !python_[at_].boundary) put_python(python_[at_++]);
    if (at_ < python_count_) ++at_;
  }
  void rest() {
    for (; at_ < python_count_; ++at_)
      if (!python_[at_].boundary) put_python(python_[at_]);
  }
  // The address that ends the next run; 0 where no run is left.
  [[nodiscard]] uintptr_t next_boundary() const {
    for (size_t i = at_; i < python_count_; ++i)
      if (python_[i].boundary) return python_[i].value;
    return 0;
  }
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  void put_python(const PythonEntry& entry) {
    put({entry.value, static_cast<uint32_t>(entry.offset), true});
  }
  void put(const MergedFrame& frame) {
    if (count_ < max_)
      out_[count_++] = frame;
    else
      cut_ = true;
  }

  const PythonEntry* python_;
  size_t python_count_;
  size_t at_ = 0;
  MergedFrame* out_;
  size_t max_;
  size_t count_ = 0;
  bool cut_ = false;
};

bool in_loop(const NativeFrame& frame, LoopRange loop) {
  return frame.pc > loop.begin && frame.pc <= loop.end;
}

// Boundaries grow outwards as the stack does; a coroutine library that switches stacks breaks that.
Match choose(const NativeFrame* native, size_t native_count, const PythonEntry* python,
             size_t python_count, LoopRange loop) {
  if (native_count == 0) return Match::none;
  const bool addresses = native[0].cfa != 0;
  size_t boundaries = 0;
  uintptr_t previous = 0;
  bool ordered = addresses;
  for (size_t i = 0; i < python_count; ++i) {
    if (!python[i].boundary) continue;
    ++boundaries;
    if (python[i].value <= previous) ordered = false;
    previous = python[i].value;
  }
  if (boundaries == 0) return Match::none;
  if (ordered) return Match::address;
  size_t loops = 0;
  for (size_t i = 0; i < native_count; ++i)
    if (in_loop(native[i], loop)) ++loops;
  return loops == boundaries ? Match::order : Match::none;
}

}  // namespace

size_t merge_frames(const NativeFrame* native, size_t native_count, const PythonEntry* python,
                    size_t python_count, LoopRange loop, MergedFrame* out, size_t max, bool& cut) {
  Merger merger(python, python_count, out, max);
  const Match match = choose(native, native_count, python, python_count, loop);
  for (size_t i = 0; i < native_count; ++i) {
    if (match == Match::address) {
      // A native frame spans the stack from its callee's end to its own.
      const uintptr_t boundary = merger.next_boundary();
      if (boundary != 0 && boundary < native[i].cfa)
        merger.run();
      else
        merger.native(native[i].pc);
    } else if (match == Match::order) {
      if (in_loop(native[i], loop))
        merger.run();
      else
        merger.native(native[i].pc);
    } else {
      if (python_count != 0 && in_loop(native[i], loop)) break;
      merger.native(native[i].pc);
    }
  }
  merger.rest();
  cut = merger.cut();
  return merger.count();
}

}  // namespace vramtrack
