#include "stack/python_code.h"

#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "record/pages.h"
#include "record/recorder.h"
#include "stack/intern_table.h"
#include "stack/python_frames.h"

namespace vramtrack {
namespace {

// A record has to fit into a chunk; a table beyond this is cut, which costs lines, not frames.
constexpr size_t kMaxLineTable = size_t{32} * 1024;
constexpr size_t kMaxText = 1024;

constinit InternTable<uint32_t> g_codes;  // address -> id and its traits, 0: unknown or freed
constexpr uint32_t kMethod = 1U << 31;
constexpr uint32_t kCallsModule = 1U << 30;
constexpr uint32_t kTraits = kMethod | kCallsModule;
std::atomic<uint32_t> g_next_code{1};
void (*g_code_dealloc)(void*) = nullptr;

void code_dealloc(void* code) {
  InternTable<uint32_t>::Slot* slot = g_codes.find(reinterpret_cast<uintptr_t>(code));
  if (slot != nullptr) slot->value.store(0, std::memory_order_release);
  g_code_dealloc(code);
}

template <typename T>
T read(uintptr_t base, size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(base + offset), sizeof value);
  return value;
}

size_t put_utf8(uint32_t point, char* out) {
  if (point < 0x80) {
    out[0] = static_cast<char>(point);
    return 1;
  }
  if (point < 0x800) {
    out[0] = static_cast<char>(0xc0 | point >> 6);
    out[1] = static_cast<char>(0x80 | (point & 0x3f));
    return 2;
  }
  if (point < 0x10000) {
    out[0] = static_cast<char>(0xe0 | point >> 12);
    out[1] = static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out[2] = static_cast<char>(0x80 | (point & 0x3f));
    return 3;
  }
  out[0] = static_cast<char>(0xf0 | (point >> 18 & 7));
  out[1] = static_cast<char>(0x80 | (point >> 12 & 0x3f));
  out[2] = static_cast<char>(0x80 | (point >> 6 & 0x3f));
  out[3] = static_cast<char>(0x80 | (point & 0x3f));
  return 4;
}

// Interns a Python string; `state` holds 2 bits interned, 3 bits kind (1, 2 or 4 bytes per
// character), then compact and ascii.
uint32_t intern_text(const PythonLayout& layout, uintptr_t text) {
  if (text == 0) return 0;
  const auto length = read<int64_t>(text, kTextLength);
  const auto state = read<uint32_t>(text, kTextState);
  const unsigned kind = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0;
  const bool ascii = (state >> 6 & 1) != 0;
  if (length < 0 || !compact) return 0;
  if (ascii) {
    const size_t bytes =
        static_cast<size_t>(length) < kMaxText ? static_cast<size_t>(length) : kMaxText;
    return intern_string(
        std::string_view(reinterpret_cast<const char*>(text + layout.ascii_header), bytes));
  }
  char utf8[kMaxText + 4];
  size_t bytes = 0;
  for (int64_t i = 0; i < length && bytes < kMaxText; ++i) {
    const uintptr_t data = text + layout.compact_header;
    const auto at = static_cast<size_t>(i);
    uint32_t point = '?';
    if (kind == 1) point = read<uint8_t>(data, at);
    if (kind == 2) point = read<uint16_t>(data, at * 2);
    if (kind == 4) point = read<uint32_t>(data, at * 4);
    bytes += put_utf8(point, utf8 + bytes);
  }
  return intern_string(std::string_view(utf8, bytes));
}

// "Class.method", not "function" or "function.<locals>.inner". Before 3.11 only the last part is
// known, and only few say enough.
bool is_method(const PythonLayout& layout, std::string_view name) {
  if (layout.minor <= 10) return name == "forward";
  constexpr std::string_view kLocals = "<locals>";
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  return dot < kLocals.size() ||
         std::memcmp(name.data() + dot - kLocals.size(), kLocals.data(), kLocals.size()) != 0;
}

// PyTorch calls each module by `_wrapped_call_impl`; in the `_call_impl` below it `self` is a
// closure's cell.
uint32_t traits_of(const PythonLayout& layout, uintptr_t code) {
  const auto text = read<uintptr_t>(code, layout.code_name);
  if (text == 0 || (read<uint32_t>(text, kTextState) >> 6 & 1) == 0) return 0;
  const std::string_view name(reinterpret_cast<const char*>(text + layout.ascii_header),
                              static_cast<size_t>(read<int64_t>(text, kTextLength)));
  if (name == (layout.minor <= 10 ? "_wrapped_call_impl" : "Module._wrapped_call_impl"))
    return kMethod | kCallsModule;
  return is_method(layout, name) ? kMethod : 0;
}

bool write_code(const PythonLayout& layout, uintptr_t code, uint32_t id) {
  const auto table = read<uintptr_t>(code, layout.code_line_table);
  size_t table_bytes = 0;
  if (table != 0) {
    const auto size = read<int64_t>(table, kBytesSize);
    if (size > 0) table_bytes = static_cast<size_t>(size);
    if (table_bytes > kMaxLineTable) table_bytes = kMaxLineTable;
  }
  constexpr size_t kHead = 1 + 6 * kMaxVarintBytes;
  uint8_t small[kHead + 2048];
  uint8_t* record = small;
  const bool large = kHead + table_bytes > sizeof small;
  if (large) record = static_cast<uint8_t*>(map_pages(kHead + table_bytes));
  if (record == nullptr) return false;

  Writer writer(record);
  writer.byte(static_cast<uint8_t>(EventKind::define_code));
  writer.varint(id);
  writer.varint(intern_text(layout, read<uintptr_t>(code, layout.code_name)));
  writer.varint(intern_text(layout, read<uintptr_t>(code, layout.code_file)));
  const int first_line = read<int>(code, layout.code_first_line);
  writer.varint(first_line > 0 ? static_cast<uint64_t>(first_line) : 0);
  writer.varint(layout.minor);
  writer.varint(table_bytes);
  writer.bytes(reinterpret_cast<const void*>(table + kBytesData), table_bytes);
  const bool written = write_definition(record, writer.size());
  if (large) unmap_pages(record, kHead + table_bytes);
  return written;
}

}  // namespace

void watch_code_objects(const Python& python) {
  auto* slot = reinterpret_cast<std::atomic<void (*)(void*)>*>(python.code_type + kTypeDealloc);
  g_code_dealloc = slot->load(std::memory_order_acquire);
  if (g_code_dealloc == nullptr) return;
  slot->store(code_dealloc, std::memory_order_release);
}

CodeId code_id(const Python& python, uintptr_t code) {
  bool inserted = false;
  auto* slot = g_codes.find_or_insert(code, inserted);
  if (slot == nullptr) return {};
  uint32_t word = slot->value.load(std::memory_order_acquire);
  if (word == 0) {
    const uint32_t id = g_next_code.fetch_add(1, std::memory_order_relaxed) & ~kTraits;
    const uint32_t fresh = id | traits_of(python.layout, code);
    // Several threads may run the same new code: one id wins, and only its owner writes it.
    if (slot->value.compare_exchange_strong(word, fresh)) {
      word = fresh;
      if (!write_code(python.layout, code, id)) {
        slot->value.store(0, std::memory_order_release);
        return {};
      }
    }
  }
  return {word & ~kTraits, (word & kMethod) != 0, (word & kCallsModule) != 0};
}

void code_objects_after_fork_child() {
  g_codes.clear();
  g_next_code.store(1, std::memory_order_relaxed);
}

}  // namespace vramtrack
