// The tables of handles, and the functions that the subjects of this folder offer one another.
#ifndef SIMGPU_DRIVER_TABLES_H
#define SIMGPU_DRIVER_TABLES_H

#include <functional>

#include "array.h"
#include "driver.h"
#include "graph.h"
#include "memory.h"
#include "module.h"
#include "pool.h"
#include "vmm.h"

namespace simgpu {

struct Tables {
  HandleTable<Pool, CUmemoryPool, 1 << 16> pools;
  VmmState vmm;
  HandleTable<Array, CUarray> arrays;
  HandleTable<MipmappedArray, CUmipmappedArray, 1 << 16> mipmapped_arrays;
  HandleTable<Module, CUmodule> modules;
  HandleTable<Function, CUfunction, std::size_t{1} << 22> functions;
  HandleTable<Graph, CUgraph> graphs;
  HandleTable<GraphNode, CUgraphNode, std::size_t{1} << 23> nodes;
  HandleTable<GraphExec, CUgraphExec> execs;
  HandleTable<UserObject, CUuserObject> user_objects;
};

// memory.cpp, module.cpp
void release_context_memory(Context* context);
void release_context_modules(Context* context);
int declare_global(void* library, const char* name, std::size_t size);

// pool.cpp
void create_default_pool(Device* device);
void release_to_pool(const Allocation& allocation, const char* operation);
void trim_pools_on_synchronise(Device* device);
void trim_pools_on_reset(Device* device);

// vmm.cpp
std::uint64_t vmm_contents_address(const VmmHandle* handle);
unsigned long long vmm_handle_types(const Allocation& allocation);

// memcpy.cpp, memset.cpp: the transfer itself, now
CUresult copy_box(const CUDA_MEMCPY3D& copy);
CUresult set_box(const CUDA_MEMSET_NODE_PARAMS& set);

// function.cpp, module.cpp
CUresult find_function(CUfunction handle, Function*& function);
CUresult function_in_context(Function* function, Context* context, Function*& own);
int static_shared_bytes(const Function* function);
int max_threads_per_block(const Function* function);
int registers_per_thread(const Function* function);
int max_dynamic_shared_bytes(const Function* function);

// event.cpp, stream.cpp
void record_event(Event* event, Stream* stream);
void wait_for_host_functions(Stream* stream);
void enqueue_host_function(Stream* stream, std::function<void()> function);

// capture.cpp: what is refused while captures are under way
CUresult refuse_in_capture();                 // calls that are unsafe for any capture
CUresult refuse_synchronise(Stream* stream);  // waiting for a stream
CUresult stream_for_work(CUstream handle, Context* context, Stream*& stream);
bool event_is_captured(const Event* event);
void abandon_capture(Stream* stream);
// ... and what a capturing stream records instead of doing it
CUresult capture_event_record(Stream* stream, Event* event, unsigned flags);
CUresult capture_event_wait(Stream* stream, Event* event, unsigned flags);
CUresult capture_allocation(Stream* stream, Device* device, std::size_t size,
                            std::uint64_t& address);
CUresult capture_free(Stream* stream, CUdeviceptr pointer);
CUresult capture_copy(Stream* stream, const CUDA_MEMCPY3D& copy);
CUresult capture_set(Stream* stream, const CUDA_MEMSET_NODE_PARAMS& set);
CUresult capture_kernel(Stream* stream, const CUDA_KERNEL_NODE_PARAMS& launch);
CUresult capture_host(Stream* stream, CUhostFn function, void* data);
CUresult capture_child(Stream* stream, Graph* graph);

// graph_memory.cpp
CUresult reserve_allocation_node(GraphNode* node, Device* device, std::size_t size);
void release_graph_allocation(const Allocation& allocation, const char* operation);
std::shared_ptr<GraphMemory> new_graph_memory();
// Before a launch: what the nodes, in this order, need at once is held.
CUresult hold_graph_memory(GraphMemory* memory, const std::vector<GraphNode*>& order,
                           bool free_first);
CUresult allocate_graph_node(const std::shared_ptr<GraphMemory>& memory, const GraphNode* node);
CUresult free_graph_node(const GraphNode* node);
void end_graph_memory(GraphMemory* memory);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_TABLES_H
