#include "cupti/buffers.h"

#include <sys/mman.h>

#include <atomic>

namespace vramtrack {
namespace {

constexpr size_t kBuffers = 256;  // one per thread of the program, and those under way

// The lowest bit says that it is out; pages are aligned.
constinit std::atomic<uintptr_t> g_buffers[kBuffers];

constexpr uintptr_t kOut = 1;

}  // namespace

uint8_t* take_cupti_buffer() {
  for (auto& slot : g_buffers) {
    uintptr_t buffer = slot.load(std::memory_order_relaxed);
    if ((buffer & kOut) != 0) continue;
    if (!slot.compare_exchange_strong(buffer, buffer | kOut, std::memory_order_acquire)) continue;
    if (buffer != 0) return reinterpret_cast<uint8_t*>(buffer);
    void* fresh = mmap(nullptr, kCuptiBufferBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) {
      slot.store(0, std::memory_order_release);
      return nullptr;
    }
    slot.store(reinterpret_cast<uintptr_t>(fresh) | kOut, std::memory_order_release);
    return static_cast<uint8_t*>(fresh);
  }
  return nullptr;
}

void give_back_cupti_buffer(uint8_t* buffer) {
  const auto out = reinterpret_cast<uintptr_t>(buffer) | kOut;
  for (auto& slot : g_buffers)
    if (slot.load(std::memory_order_relaxed) == out)
      return slot.store(out & ~kOut, std::memory_order_release);
}

}  // namespace vramtrack
