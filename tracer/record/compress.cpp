#include "record/compress.h"

#include <sys/mman.h>
#include <vramtrack/trace_format.h>

#include <atomic>

#ifdef VRAMTRACK_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#endif

namespace vramtrack {

struct Workspace {
  std::atomic<uint32_t> taken{0};
  void* memory = nullptr;
  void* context = nullptr;
  uint8_t* output = nullptr;
};

namespace {

constinit Workspace g_workspaces[4];

}  // namespace

#ifdef VRAMTRACK_HAVE_ZSTD
namespace {

constexpr int kLevel = 1;

bool prepare(Workspace& w) {
  if (w.context != nullptr) return true;
  if (w.memory != nullptr) {  // from before a fork, in an unknown state
    w.context = ZSTD_initStaticCCtx(w.memory, ZSTD_estimateCCtxSize(kLevel));
    return w.context != nullptr;
  }
  const size_t context_bytes = ZSTD_estimateCCtxSize(kLevel);
  const size_t output_bytes = ZSTD_compressBound(kMaxSlotBytes);
  void* memory = mmap(nullptr, context_bytes + output_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  w.memory = memory;
  w.output = static_cast<uint8_t*>(memory) + context_bytes;
  w.context = ZSTD_initStaticCCtx(memory, context_bytes);
  return w.context != nullptr;
}

}  // namespace

Compressed::Compressed(const void* raw, size_t bytes) {
  for (Workspace& w : g_workspaces) {
    if (w.taken.exchange(1, std::memory_order_acquire) != 0) continue;
    workspace_ = &w;
    break;
  }
  if (workspace_ == nullptr || bytes > kMaxSlotBytes || !prepare(*workspace_)) return;
  const size_t size =
      ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(workspace_->context), workspace_->output,
                        ZSTD_compressBound(kMaxSlotBytes), raw, bytes, kLevel);
  if (ZSTD_isError(size) != 0 || size >= bytes) return;
  data_ = workspace_->output;
  size_ = size;
}
#else
Compressed::Compressed(const void*, size_t) {
}
#endif

Compressed::~Compressed() {
  if (workspace_ != nullptr) workspace_->taken.store(0, std::memory_order_release);
}

void compress_after_fork() {
  for (Workspace& w : g_workspaces) {
    w.context = nullptr;  // another thread may have been in the middle of it
    w.taken.store(0, std::memory_order_relaxed);
  }
}

}  // namespace vramtrack
