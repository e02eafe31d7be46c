#include "stack/python_modules.h"

#include <atomic>

#include "record/recorder.h"
#include "stack/intern_table.h"

namespace vramtrack {
namespace {

constinit InternTable<uint32_t> g_modules;  // address -> string id
constexpr uint32_t kAwaited = 1U << 31;     // reserved, its text is not known yet
std::atomic<bool> g_any{false};
std::atomic<bool> g_awaiting{false};

}  // namespace

void name_module(uintptr_t object, std::string_view name) {
  bool inserted = false;
  auto* slot = object == 0 ? nullptr : g_modules.find_or_insert(object, inserted);
  if (slot == nullptr) return;
  const uint32_t known = slot->value.load(std::memory_order_acquire);
  if ((known & kAwaited) != 0 && define_string(known & ~kAwaited, name))
    slot->value.store(known & ~kAwaited, std::memory_order_release);
  else
    slot->value.store(intern_string(name), std::memory_order_release);
  g_any.store(true, std::memory_order_release);
}

uint32_t module_name(uintptr_t object) {
  if (object == 0 || !g_any.load(std::memory_order_acquire)) return 0;
  const auto* slot = g_modules.find(object);
  return slot == nullptr ? 0 : slot->value.load(std::memory_order_acquire) & ~kAwaited;
}

void await_module_names() {
  g_awaiting.store(true, std::memory_order_release);
}

uint32_t called_module_name(uintptr_t object) {
  if (!g_awaiting.load(std::memory_order_acquire)) return module_name(object);
  bool inserted = false;
  auto* slot = object == 0 ? nullptr : g_modules.find_or_insert(object, inserted);
  if (slot == nullptr) return 0;
  uint32_t known = slot->value.load(std::memory_order_acquire);
  if (known == 0) {
    const uint32_t fresh = reserve_string() | kAwaited;
    if (fresh == kAwaited) return 0;
    if (slot->value.compare_exchange_strong(known, fresh)) known = fresh;
    g_any.store(true, std::memory_order_release);
  }
  return known & ~kAwaited;
}

void python_modules_after_fork_child() {
  g_modules.clear();
  g_any.store(false, std::memory_order_relaxed);
}

}  // namespace vramtrack
