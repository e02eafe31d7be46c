// The simulated GPU's own interface, exported by its libcuda.so.1 beside the CUDA driver API.
//
// For the other stand-in libraries (which read and write small contents and say what they assume)
// and for tests (whose independent witness the totals are). A program that runs on the simulated
// GPU never needs it. Look the names up with dlsym, or link the stand-in; all are plain C.
#ifndef SIMGPU_SIMGPU_H
#define SIMGPU_SIMGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Bytes per device. `used` is what counts against the device's size: everything but `managed`.
struct simgpu_usage {
  uint64_t total;   // size of the device, as the card reports it
  uint64_t used;    // device + pool_reserved + vmm + array + graph + module + context + library
  uint64_t peak;    // highest `used` so far
  uint64_t device;  // cuMemAlloc, cuMemAllocPitch: bytes as asked for (pitch times height)
  uint64_t pool_reserved;  // what the pools hold of the device
  uint64_t pool_used;      // what stream-ordered allocations occupy inside the pools
  uint64_t vmm;            // cuMemCreate, until references and mappings are gone
  uint64_t array;          // arrays and mipmapped arrays
  uint64_t graph;          // allocation nodes of launched graphs
  uint64_t module;         // __device__ variables that were looked up
  uint64_t context;        // ESTIMATE: contexts
  uint64_t library;        // ESTIMATE: what stand-in libraries said that they would hold
  uint64_t managed;        // managed memory, outside `used`
  uint64_t pinned;         // host memory pinned by this process while the device was current
  uint64_t registered;     // host memory registered, likewise
};

// 0, or a CUresult where there is no such device or the driver is not initialised.
int simgpu_get_usage(int device, struct simgpu_usage* usage);
int simgpu_device_count(void);
// Short name of the model ("h100-80g"), NULL where there is no such device.
const char* simgpu_device_model(int device);

// What a card says about itself, before cuInit, too. `index` counts all cards of SIMGPU, like NVML;
// `ordinal` is the CUDA ordinal, -1 where CUDA_VISIBLE_DEVICES hides the card.
struct simgpu_description {
  char model[32];
  char name[96];
  uint64_t total;
  int ordinal;
  int major, minor;
  int multiprocessors;
  int clock_khz, memory_clock_khz;
  int driver_version;
  unsigned char uuid[16];
};
int simgpu_describe_count(void);
int simgpu_describe(int index, struct simgpu_description* description);

// ---- ESTIMATE: what libraries keep on the device outside any allocator (README.md has the table)
struct simgpu_library_estimate {
  uint64_t code;          // from the first handle to the end of the context
  uint64_t first_handle;  // while there are handles
  uint64_t each_handle;
  int channels;  // of an NCCL communicator; 0: its ranks share no device memory
};
// `library`: "cuBLAS", "cuDNN" or "NCCL"; nothing is known of others.
int simgpu_get_library_estimate(int device, const char* library,
                                struct simgpu_library_estimate* estimate);
// A handle of the library was made, or destroyed; `bytes` on top of the estimate.
// CUDA_ERROR_OUT_OF_MEMORY (2) where it does not fit.
int simgpu_open_library(int device, const char* library, uint64_t bytes);
void simgpu_close_library(int device, const char* library, uint64_t bytes);
// What all libraries hold now; 0 where there is no such device.
uint64_t simgpu_library_bytes(int device);

// ---- contents: small copies and sets keep real bytes, a kernel's values are never known
int simgpu_is_device_address(uint64_t address);
// Makes bytes known (at most 1 MiB a call; more only makes them unknown).
void simgpu_write(uint64_t address, const void* data, size_t size);
// Reads, zeros where unknown; returns how many of the bytes are known. Counts nothing.
size_t simgpu_read(uint64_t address, void* data, size_t size);
// Makes bytes unknown: a stand-in calls it for what a kernel would have overwritten.
void simgpu_forget(uint64_t address, size_t size);

// ---- what had to be assumed
// Counts `count` values assumed by `operation` (a string literal: the pointer is kept).
void simgpu_assume(const char* operation, uint64_t count);
uint64_t simgpu_assumed(const char* operation);
void simgpu_for_each_assumption(void (*visit)(const char* operation, uint64_t count, void* user),
                                void* user);

// Says once per name "simgpu: not simulated: NAME" on stderr; returns CUDA_ERROR_NOT_SUPPORTED.
int simgpu_not_simulated(const char* name);

// ---- kernels and variables of images that cannot be read (fat binaries are opaque)
// The runtime's registration knows the size of a __device__ variable; `library` is a CUlibrary or
// CUmodule. Afterwards cuLibraryGetGlobal / cuModuleGetGlobal answer.
int simgpu_declare_global(void* library, const char* name, size_t size);

// ---- what a profiler is told
// Function calls, memory, kernels, copies and sets, as they happen, in the thread that asks for
// them. The stand-in CUPTI listens; the driver knows nothing of it.
enum simgpu_activity_kind {
  SIMGPU_CALL_BEGINS = 1,  // function, correlation, context
  SIMGPU_CALL_ENDS = 2,    // likewise, result
  SIMGPU_ALLOCATED = 3,    // address, size, memory, pool if any, stream if ordered by one
  SIMGPU_RELEASED = 4,     // likewise
  SIMGPU_POOL = 5,         // pool, operation: 1 created, 2 destroyed, 3 trimmed to `size`
  SIMGPU_KERNEL = 6,       // name, grid, block, registers, shared_bytes
  SIMGPU_COPY = 7,         // address, from, size; to_memory, from_memory
  SIMGPU_SET = 8           // address, size, value
};
enum simgpu_memory_kind {
  SIMGPU_MEMORY_HOST = 1,  // pageable
  SIMGPU_MEMORY_PINNED = 2,
  SIMGPU_MEMORY_DEVICE = 3,
  SIMGPU_MEMORY_ARRAY = 4,
  SIMGPU_MEMORY_MANAGED = 5
};
struct simgpu_activity {
  int kind;
  int device;            // -1 where the call has no context
  uint32_t correlation;  // one per call of the program: nested calls share it
  uint32_t context;      // ids, not handles; 0 none
  uint32_t stream;
  const char* function;  // exported name of the driver function, a string literal
  void* context_handle;
  int result;  // CUresult
  int memory;  // simgpu_memory_kind; of a copy: of the destination
  int from_memory;
  int operation;
  int asynchronous;
  uint64_t address, from, size;
  uint64_t pool, pool_reserved, pool_used, pool_threshold;
  const char* name;  // of a kernel; valid while its module is loaded
  uint32_t grid[3], block[3];
  uint32_t registers, shared_bytes, value;
  uint64_t graph_node;  // 0: not launched by a graph
};
typedef void (*simgpu_activity_sink)(const struct simgpu_activity*);  // NOLINT(modernize-use-using)
// At most four; 0 where there is no room. A sink may be called until the calls that are under way
// have returned.
int simgpu_add_activity_sink(simgpu_activity_sink sink);
void simgpu_remove_activity_sink(simgpu_activity_sink sink);

#ifdef __cplusplus
}
#endif

#endif  // SIMGPU_SIMGPU_H
