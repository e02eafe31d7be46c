// Memory nodes: addresses are fixed when the node is made, physical memory comes with the first
// launch.
//
// ASSUMED: an executable graph holds what its nodes need at once, in topological order, from its
// first launch until it is destroyed or cuDeviceGraphMemTrim finds nothing of it in use. The real
// driver shares such memory between graphs; documented are only its attributes.
#include <algorithm>

#include "graph.h"
#include "tables.h"

namespace simgpu {

struct GraphMemory {
  Device* device = nullptr;
  std::uint64_t held = 0;
  int live = 0;           // allocations that are still to be freed
  bool orphaned = false;  // its executable graph is gone
};

namespace {

std::mutex g_memory_mutex;
struct Live {
  std::shared_ptr<GraphRange> range;
  std::shared_ptr<GraphMemory> memory;
};
std::map<std::uint64_t, Live>& live() {
  static auto* const the_live = new std::map<std::uint64_t, Live>;
  return *the_live;
}
std::vector<std::weak_ptr<GraphMemory>>& all_memory() {
  static auto* const all = new std::vector<std::weak_ptr<GraphMemory>>;
  return *all;
}

void raise(std::atomic<std::uint64_t>& high, std::uint64_t value) {
  std::uint64_t before = high.load();
  while (before < value && !high.compare_exchange_weak(before, value)) {
  }
}

void give_up(GraphMemory* memory, const char* operation) {
  if (memory->held == 0 || memory->live > 0) return;
  memory->device->ledger.credit(Kind::kGraph, memory->held, operation, 0);
  memory->device->graph_reserved.fetch_sub(memory->held);
  memory->held = 0;
}

}  // namespace

std::shared_ptr<GraphMemory> new_graph_memory() {
  auto memory = std::make_shared<GraphMemory>();
  std::lock_guard lock(g_memory_mutex);
  std::erase_if(all_memory(), [](const auto& known) { return known.expired(); });
  all_memory().push_back(memory);
  return memory;
}

CUresult reserve_allocation_node(GraphNode* node, Device* device, std::size_t size) {
  std::uint64_t address = driver().addresses.take(size, kAllocationAlignment);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  node->range = std::make_shared<GraphRange>(address, size);
  node->device = device;
  node->allocation.dptr = address;
  node->allocation.bytesize = size;
  return CUDA_SUCCESS;
}

CUresult hold_graph_memory(GraphMemory* memory, const std::vector<GraphNode*>& order,
                           bool free_first) {
  std::map<CUdeviceptr, std::uint64_t> sizes;
  std::uint64_t now = 0, most = 0;
  std::vector<CUdeviceptr> still_live;
  std::lock_guard lock(g_memory_mutex);
  for (const GraphNode* node : order) {
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      memory->device = node->device;
      sizes[node->allocation.dptr] = node->allocation.bytesize;
      now += node->allocation.bytesize;
      most = std::max(most, now);
      if (live().count(node->allocation.dptr) != 0) still_live.push_back(node->allocation.dptr);
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE && sizes.count(node->freed) != 0) {
      now -= sizes[node->freed];
    }
  }
  // A graph that leaves memory to its user cannot run again before that is freed.
  if (!still_live.empty() && !free_first) return CUDA_ERROR_INVALID_VALUE;
  for (CUdeviceptr address : still_live) {
    auto found = live().find(address);
    registry().remove(address, [](const Allocation&) { return true; });
    memory->device->graph_used.fetch_sub(found->second.range->size);
    --found->second.memory->live;
    live().erase(found);
  }
  if (most <= memory->held) return CUDA_SUCCESS;
  SIMGPU_TRY(memory->device->ledger.charge(Kind::kGraph, most - memory->held, "cuGraphLaunch", 0));
  memory->device->graph_reserved.fetch_add(most - memory->held);
  raise(memory->device->graph_reserved_high, memory->device->graph_reserved.load());
  memory->held = most;
  return CUDA_SUCCESS;
}

CUresult allocate_graph_node(const std::shared_ptr<GraphMemory>& memory, const GraphNode* node) {
  std::lock_guard lock(g_memory_mutex);
  live()[node->allocation.dptr] = {node->range, memory};
  ++memory->live;
  node->device->graph_used.fetch_add(node->allocation.bytesize);
  raise(node->device->graph_used_high, node->device->graph_used.load());
  registry().add({.address = node->allocation.dptr,
                  .size = node->allocation.bytesize,
                  .source = Source::kGraph,
                  .context = driver().contexts.find(node->context),
                  .device = node->device});
  return CUDA_SUCCESS;
}

CUresult free_graph_node(const GraphNode* node) {
  auto allocation = registry().remove(
      node->freed, [](const Allocation& found) { return found.source == Source::kGraph; });
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  release_graph_allocation(*allocation, "graph free node");
  return CUDA_SUCCESS;
}

void release_graph_allocation(const Allocation& allocation, const char* operation) {
  driver().contents.forget(allocation.address, allocation.size);
  std::lock_guard lock(g_memory_mutex);
  auto found = live().find(allocation.address);
  if (found == live().end()) return;
  Live ended = found->second;
  live().erase(found);
  allocation.device->graph_used.fetch_sub(allocation.size);
  --ended.memory->live;
  if (ended.memory->orphaned) give_up(ended.memory.get(), operation);
}

void end_graph_memory(GraphMemory* memory) {
  std::lock_guard lock(g_memory_mutex);
  memory->orphaned = true;
  give_up(memory, "cuGraphExecDestroy");
}

}  // namespace simgpu

using namespace simgpu;

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  std::lock_guard lock(g_memory_mutex);
  for (auto& known : all_memory())
    if (auto memory = known.lock(); memory != nullptr && memory->device == device)
      give_up(memory.get(), "cuDeviceGraphMemTrim");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* number = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *number = device->graph_used;
      break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *number = device->graph_used_high;
      break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *number = device->graph_reserved;
      break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *number = device->graph_reserved_high;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  Device* device;
  SIMGPU_TRY(find_device(ordinal, device));
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      device->graph_used_high = device->graph_used.load();
      break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      device->graph_reserved_high = device->graph_reserved.load();
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
