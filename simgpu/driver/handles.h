// Handles that can be checked. An object of the driver lives in a slot of a reserved range and its
// handle is the slot's address: a handle from elsewhere, or of an object that was destroyed, is
// told apart without a lock. Slots are recycled and the range is never returned, because programs
// use handles after destruction, at exit too.
#ifndef SIMGPU_DRIVER_HANDLES_H
#define SIMGPU_DRIVER_HANDLES_H

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace simgpu {

template <class Object, class Handle, std::size_t kCapacity = std::size_t{1} << 20>
class HandleTable {
 public:
  HandleTable() {
    // Address space only: a machine that counts what it promises would refuse all of it as memory.
    void* range = mmap(nullptr, sizeof(Slot) * kCapacity, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range != MAP_FAILED) slots_ = static_cast<Slot*>(range);
  }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // nullptr where all handles are taken.
  template <class... Arguments>
  Object* create(Arguments&&... arguments) {
    Slot* slot = take();
    if (slot == nullptr) return nullptr;
    Object* object = new (slot->storage) Object{std::forward<Arguments>(arguments)...};
    slot->alive.store(1, std::memory_order_release);
    return object;
  }

  static Handle handle(const Object* object) {
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<Object*>(object));
    return reinterpret_cast<Handle>(bytes - offsetof(Slot, storage));
  }

  // The object, or nullptr where the handle is not a living object of this table.
  Object* find(Handle handle) const {
    std::uintptr_t offset = (std::uintptr_t)handle - reinterpret_cast<std::uintptr_t>(slots_);
    if (offset >= used_bytes_.load(std::memory_order_acquire) || offset % sizeof(Slot) != 0)
      return nullptr;
    Slot* slot = slots_ + offset / sizeof(Slot);
    if (slot->alive.load(std::memory_order_acquire) == 0) return nullptr;
    return std::launder(reinterpret_cast<Object*>(slot->storage));
  }

  void destroy(Object* object) {
    Slot* slot = reinterpret_cast<Slot*>(handle(object));
    if (slot->alive.exchange(0) == 0) return;
    object->~Object();
    std::lock_guard lock(mutex_);
    slot->next_free = free_;
    free_ = slot;
  }

  // Visits the living objects; the caller keeps them from being destroyed meanwhile.
  template <class Visit>
  void for_each(Visit&& visit) {
    std::size_t used = used_bytes_.load(std::memory_order_acquire) / sizeof(Slot);
    for (std::size_t i = 0; i < used; ++i) {
      Slot* slot = slots_ + i;
      if (slot->alive.load(std::memory_order_acquire) != 0)
        visit(std::launder(reinterpret_cast<Object*>(slot->storage)));
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint32_t> alive;
    Slot* next_free;
    alignas(Object) unsigned char storage[sizeof(Object)];
  };

  Slot* take() {
    std::lock_guard lock(mutex_);
    if (free_ != nullptr) {
      Slot* slot = free_;
      free_ = slot->next_free;
      return slot;
    }
    std::size_t used = used_bytes_.load(std::memory_order_relaxed);
    if (slots_ == nullptr || used == sizeof(Slot) * kCapacity) return nullptr;
    if (used + sizeof(Slot) > usable_bytes_ && !make_usable()) return nullptr;
    used_bytes_.store(used + sizeof(Slot), std::memory_order_release);
    return slots_ + used / sizeof(Slot);
  }

  bool make_usable() {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    std::size_t step = (sizeof(Slot) + kStep - 1) / kStep * kStep;
    step = std::min(step, (sizeof(Slot) * kCapacity - usable_bytes_ + 4095) / 4096 * 4096);
    char* start = reinterpret_cast<char*>(slots_) + usable_bytes_;
    if (mprotect(start, step, PROT_READ | PROT_WRITE) != 0) return false;
    usable_bytes_ += step;
    return true;
  }

  Slot* slots_ = nullptr;
  std::atomic<std::size_t> used_bytes_{0};
  std::size_t usable_bytes_ = 0;
  Slot* free_ = nullptr;
  std::mutex mutex_;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_HANDLES_H
