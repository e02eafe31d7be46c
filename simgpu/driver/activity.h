// What the driver tells a profiler (simgpu.h: simgpu_add_activity_sink): calls of its functions,
// and the memory, kernels, copies and sets that follow from them. The driver knows nothing of
// CUPTI; the stand-in of that library listens here. While nobody listens a call costs one load.
#ifndef SIMGPU_DRIVER_ACTIVITY_H
#define SIMGPU_DRIVER_ACTIVITY_H

#include <atomic>

#include "memory.h"

namespace simgpu {

extern std::atomic<int> g_listeners;

inline bool listening() {
  return !likely(g_listeners.load(std::memory_order_relaxed) == 0);
}

// The call of a public function, from its beginning to its end.
class ToldCall {
 public:
  explicit ToldCall(const char* function);
  ~ToldCall();
  ToldCall(const ToldCall&) = delete;
  ToldCall& operator=(const ToldCall&) = delete;

  CUresult result = CUDA_SUCCESS;

 private:
  const char* function_;
  std::uint32_t outer_correlation_;
  const char* outer_function_;
};

template <class Body>
CUresult told(const char* function, Body body) {
  if (!listening()) return body();
  ToldCall call(function);
  return call.result = body();
}

// All of these say nothing outside a told call: what the end of a context or of a process releases
// is nobody's request.
void tell_memory(const Allocation& allocation, bool allocated, Stream* stream);
void tell_pool(const Pool* pool, int operation, std::uint64_t keep);
void tell_kernel(const Stream* stream, const char* name, const CUDA_KERNEL_NODE_PARAMS& launch,
                 int registers, std::uint64_t graph_node);
void tell_copy(const Stream* stream, std::uint64_t to, std::uint64_t from, std::uint64_t size,
               std::uint64_t graph_node);
void tell_set(const Stream* stream, std::uint64_t to, std::uint64_t size, unsigned value,
              std::uint64_t graph_node);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_ACTIVITY_H
