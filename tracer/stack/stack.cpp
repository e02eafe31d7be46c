#include "stack/stack.h"

#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "record/recorder.h"
#include "stack/intern_table.h"
#include "stack/merge.h"
#include "stack/modules.h"
#include "stack/native_unwinder.h"
#include "stack/python_code.h"
#include "stack/python_frames.h"
#include "stack/python_modules.h"

extern "C" {
// The first byte of the library this code is linked into.
extern const char __ehdr_start __attribute__((visibility("hidden")));
}

namespace vramtrack {
namespace {

// One more than what a definition may hold: the last one then says that frames were cut.
constexpr size_t kMaxFrames = kMaxStackDepth - 1;

bool g_native_wanted = true;
bool g_python_wanted = true;
bool g_have_libunwind = false;
uintptr_t g_own_begin = 0;
uintptr_t g_own_end = 0;
constinit InternTable<uint32_t> g_stacks;  // hash of all frames -> id
std::atomic<void (*)()> g_listener{nullptr};
thread_local constinit uint32_t t_module = 0;

// Whole stacks are told apart by 64 bits of hash: with a million distinct stacks, the chance that
// any two share one is about one in thirty million.
class StackHash {
 public:
  explicit StackHash(uint64_t seed) : state_(seed ^ 0x9ae16a3b2f90404fULL) {}
  void add(uint64_t value) {
    state_ = (state_ ^ value) * 0x9fb21c651e98df25ULL;
    state_ ^= state_ >> 29;
  }
  [[nodiscard]] uint64_t key() const {
    uint64_t mixed = state_ * 0xd6e8feb86659fd93ULL;
    mixed ^= mixed >> 32;
    return mixed == 0 ? 1 : mixed;
  }

 private:
  uint64_t state_;
};

size_t native_backtrace(NativeFrame* frames) {
  size_t count = cfi_backtrace(frames, kMaxFrames);
  if (count == 0 && g_have_libunwind) count = libunwind_backtrace(frames, kMaxFrames);
  return count;
}

// The tracer's own frames, hook and all, are of no interest to anybody.
size_t skip_own(const NativeFrame* frames, size_t count) {
  size_t at = 0;
  while (at < count && frames[at].pc >= g_own_begin && frames[at].pc < g_own_end) ++at;
  return at;
}

void define_modules(const MergedFrame* frames, size_t count) {
  bool refreshed = false;
  for (size_t i = 0; i < count; ++i) {
    if (frames[i].python || frames[i].value == 0) continue;
    Module* module = module_at(frames[i].value - 1);
    if (module == nullptr && !refreshed) {
      refreshed = true;
      modules_refresh();
      module = module_at(frames[i].value - 1);
    }
    if (module != nullptr) module_id(*module);
  }
}

__attribute__((noinline)) uint32_t define_stack(const MergedFrame* frames, size_t count) {
  define_modules(frames, count);
  // After the modules: their ids have to be smaller (raw_definitions.h).
  const uint32_t id = next_definition_id();
  uint8_t record[1 + 2 * kMaxVarintBytes + kMaxStackDepth * (kMaxVarintBytes + 5)];
  Writer writer(record);
  writer.byte(static_cast<uint8_t>(EventKind::define_stack));
  writer.varint(id);
  writer.varint(count);
  uint64_t previous = 0;
  for (size_t i = 0; i < count; ++i) {
    if (frames[i].python) {
      writer.varint(frames[i].value * 2 + 1);
      writer.varint(frames[i].offset);
    } else {
      writer.varint(delta(frames[i].value, previous) * 2);
      previous = frames[i].value;
    }
  }
  return write_definition(record, writer.size()) ? id : 0;
}

uint32_t intern_stack(const MergedFrame* frames, size_t count) {
  StackHash hash(modules_epoch());
  for (size_t i = 0; i < count; ++i) {
    hash.add(frames[i].value * 2 + (frames[i].python ? 1 : 0));
    if (frames[i].python) hash.add(frames[i].offset);
  }
  bool inserted = false;
  InternTable<uint32_t>::Slot* slot = g_stacks.find_or_insert(hash.key(), inserted);
  if (slot == nullptr) return 0;
  // Another thread may be writing the same stack this very moment. It is not waited for beyond
  // a few hundred cycles: two ids for one stack do no harm.
  for (int spin = 0; !inserted && spin < 64; ++spin) {
    const uint32_t id = slot->value.load(std::memory_order_acquire);
    if (id != 0) return id;
    __builtin_ia32_pause();
  }
  const uint32_t id = define_stack(frames, count);
  if (id != 0) slot->value.store(id, std::memory_order_release);
  return id;
}

}  // namespace

void stacks_initialize() {
  if (const char* mode = getenv("VRAMTRACK_STACKS"); mode != nullptr) {
    g_native_wanted = std::strcmp(mode, "python") != 0 && std::strcmp(mode, "none") != 0;
    g_python_wanted = std::strcmp(mode, "native") != 0 && std::strcmp(mode, "none") != 0;
  }
  modules_refresh();  // also where no stacks are wanted: it is how Python is found
  if (!g_native_wanted && !g_python_wanted) return;
  if (const Module* own = module_at(reinterpret_cast<uintptr_t>(&__ehdr_start)); own != nullptr) {
    g_own_begin = own->begin;
    g_own_end = own->end;
  }
  if (g_native_wanted) g_have_libunwind = open_libunwind();
  if (g_python_wanted) find_python();
}

void on_capture(void (*listener)()) {
  g_listener.store(listener, std::memory_order_release);
}

uint32_t capture_stack() {
  if (void (*listener)() = g_listener.load(std::memory_order_acquire); listener != nullptr)
    listener();
  if (!g_native_wanted && !g_python_wanted) return 0;
  NativeFrame native[kMaxFrames];
  PythonEntry entries[kMaxFrames];
  MergedFrame merged[kMaxStackDepth];

  const size_t native_count = g_native_wanted ? native_backtrace(native) : 0;
  bool cut = native_count == kMaxFrames;
  size_t entry_count = 0;
  LoopRange loop{};
  const Python* interpreter = g_python_wanted ? python() : nullptr;
  if (interpreter != nullptr) {
    const PythonWalk walk = walk_python(*interpreter, entries, kMaxFrames);
    entry_count = walk.count;
    cut = cut || walk.cut;
    t_module = walk.module;
    loop = {interpreter->loop_begin, interpreter->loop_end};
  }
  const size_t own = skip_own(native, native_count);
  bool merge_cut = false;
  size_t count = merge_frames(native + own, native_count - own, entries, entry_count, loop, merged,
                              kMaxFrames, merge_cut);
  if (count == 0) return 0;
  if (cut || merge_cut) merged[count++] = MergedFrame{0, 0, false};
  return intern_stack(merged, count);
}

uint32_t captured_module() {
  return t_module;
}

void stacks_on_dlopen() {
  modules_refresh();
  if (g_python_wanted && python() == nullptr) find_python();
}

void stacks_on_dlclose() {
  if (!g_native_wanted && !g_python_wanted) return;
  const uint32_t before = modules_epoch();
  modules_refresh();
  if (modules_epoch() != before && g_have_libunwind) libunwind_flush();
}

void stacks_after_fork_child() {
  g_stacks.clear();
  modules_after_fork_child();
  code_objects_after_fork_child();
  python_modules_after_fork_child();
  t_module = 0;
}

}  // namespace vramtrack
