// cuFFT as far as PyTorch uses it: plans of any rank, and their execution, which computes nothing.
// The work area is assumed to be one copy of the complex data, the least that cuFFT's documentation
// names; it may be up to eight.
#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "common/data_type.h"
#include "common/driver.h"
#include "common/entry.h"

namespace {

enum Status : int { kSuccess = 0, kInvalidPlan = 1, kAllocationFailed = 2, kInvalidValue = 4 };

struct Plan {
  bool used, allocates;
  void* stream;
  void* work;
  std::size_t work_size;
};

// A handle is a number, and programs keep hundreds of plans. The list only grows.
struct Plans {
  std::mutex mutex;
  Plan* list = nullptr;
  int count = 0;
};
Plans g_plans;

// Calls `action(plan)` if there is one of this number.
template <class Action>
int with_plan(int handle, Action action) {
  const std::lock_guard lock(g_plans.mutex);
  if (handle < 0 || handle >= g_plans.count || !g_plans.list[handle].used) return kInvalidPlan;
  return action(g_plans.list[handle]);
}

std::size_t work_bytes(int rank, const long long* sizes, int input, int output, long long batch) {
  std::size_t bytes = std::max(simgpu::data_type_bytes(input), simgpu::data_type_bytes(output)) *
                      static_cast<std::size_t>(batch);
  for (int i = 0; i < rank; ++i) bytes *= static_cast<std::size_t>(sizes[i]);
  return bytes;
}

}  // namespace

ENTRY(cufftCreate)(int* handle) {
  if (!handle) return kInvalidValue;
  const std::lock_guard lock(g_plans.mutex);
  int free = 0;
  while (free < g_plans.count && g_plans.list[free].used) ++free;
  if (free == g_plans.count) {
    const int grown = std::max(16, 2 * g_plans.count);
    void* list = std::realloc(g_plans.list, sizeof(Plan) * static_cast<std::size_t>(grown));
    if (!list) return kAllocationFailed;
    g_plans.list = static_cast<Plan*>(list);
    std::fill(g_plans.list + g_plans.count, g_plans.list + grown, Plan{});
    g_plans.count = grown;
  }
  g_plans.list[free] = {
      .used = true, .allocates = true, .stream = nullptr, .work = nullptr, .work_size = 0};
  *handle = free;
  return kSuccess;
}

ENTRY(cufftDestroy)(int handle) {
  return with_plan(handle, [](Plan& plan) {
    if (plan.work && cuMemFree_v2) cuMemFree_v2(reinterpret_cast<std::uint64_t>(plan.work));
    plan = {};
    return kSuccess;
  });
}

ENTRY(cufftSetAutoAllocation)(int handle, int wanted) {
  return with_plan(handle, [&](Plan& plan) {
    plan.allocates = wanted != 0;
    return kSuccess;
  });
}

ENTRY(cufftSetStream)(int handle, void* stream) {
  return with_plan(handle, [&](Plan& plan) {
    plan.stream = stream;
    return kSuccess;
  });
}

ENTRY(cufftXtMakePlanMany)
(int handle, int rank, const long long* sizes, const long long*, long long, long long, int input,
 const long long*, long long, long long, int output, long long batch, std::size_t* work, int) {
  if (rank < 1 || rank > 3 || !sizes || batch < 1 || !work) return kInvalidValue;
  if (!std::all_of(sizes, sizes + rank, [](long long size) { return size > 0; }))
    return kInvalidValue;
  return with_plan(handle, [&](Plan& plan) -> int {
    plan.work_size = *work = work_bytes(rank, sizes, input, output, batch);
    if (simgpu_assume) simgpu_assume("work area of cuFFT", 1);
    if (!plan.allocates) return kSuccess;
    std::uint64_t address = 0;
    if (!cuMemAlloc_v2 || cuMemAlloc_v2(&address, *work) != 0) return kAllocationFailed;
    plan.work = reinterpret_cast<void*>(address);
    return kSuccess;
  });
}

ENTRY(cufftGetSize)(int handle, std::size_t* size) {
  if (!size) return kInvalidValue;
  return with_plan(handle, [&](const Plan& plan) {
    *size = plan.work_size;
    return kSuccess;
  });
}

// The caller's own area, which stays the caller's.
ENTRY(cufftSetWorkArea)(int handle, void*) {
  return with_plan(handle, [](const Plan&) { return kSuccess; });
}

ENTRY(cufftXtExec)(int handle, void* input, void* output, int) {
  static simgpu::LibraryKernel kernel("cufftXtExec", 2);
  void* stream = nullptr;
  const int status = with_plan(handle, [&](const Plan& plan) {
    stream = plan.stream;
    return kSuccess;
  });
  if (status == kSuccess) kernel.launch(stream, {input, output});
  return status;
}
