#include "stack/python_modules.h"

#include <atomic>

#include "stack/intern_table.h"

namespace vramtrack {
namespace {

constinit InternTable<uint32_t> g_modules;
std::atomic<bool> g_any{false};

}  // namespace

void name_module(uintptr_t object, uint32_t name) {
  bool inserted = false;
  auto* slot = object == 0 ? nullptr : g_modules.find_or_insert(object, inserted);
  if (slot == nullptr) return;
  slot->value.store(name, std::memory_order_release);
  g_any.store(true, std::memory_order_release);
}

uint32_t module_name(uintptr_t object) {
  if (object == 0 || !g_any.load(std::memory_order_acquire)) return 0;
  const auto* slot = g_modules.find(object);
  return slot == nullptr ? 0 : slot->value.load(std::memory_order_acquire);
}

void python_modules_after_fork_child() {
  g_modules.clear();
  g_any.store(false, std::memory_order_relaxed);
}

}  // namespace vramtrack
