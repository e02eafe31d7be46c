// Occupancy: computed from what is known of the kernel, and never less than one block.
#include <algorithm>

#include "module.h"
#include "tables.h"

using namespace simgpu;

namespace {

constexpr int kRegistersPerMultiprocessor = 65536;
constexpr int kReservedShared = 1024;

int blocks_per_multiprocessor(const Function* function, const DeviceModel& model, int block_size,
                              std::size_t dynamic_shared) {
  int warps = (block_size + 31) / 32;
  int blocks =
      std::min(model.blocks_per_multiprocessor, model.threads_per_multiprocessor / (warps * 32));
  int registers = (registers_per_thread(function) + 7) / 8 * 8 * warps * 32;
  blocks = std::min(blocks, kRegistersPerMultiprocessor / registers);
  auto shared = static_cast<std::size_t>(static_shared_bytes(function)) + dynamic_shared;
  if (shared > 0)
    blocks = std::min(blocks,
                      static_cast<int>(static_cast<std::size_t>(model.shared_per_multiprocessor) /
                                       (shared + kReservedShared)));
  return std::max(blocks, 1);
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int block_size, size_t shared,
                                                              unsigned int) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = blocks_per_multiprocessor(function, context->device->model, block_size, shared);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                     int block_size, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared,
                                                              CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of, size_t shared,
                                                   int limit, unsigned int) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int most = max_threads_per_block(function);
  if (limit > 0) most = std::min(most, limit);
  const DeviceModel& model = context->device->model;
  int best_threads = 0;
  for (int size = most; size > 0; size = size > 32 ? (size - 1) / 32 * 32 : 0) {
    std::size_t dynamic = shared_of != nullptr ? shared_of(size) : shared;
    int blocks = blocks_per_multiprocessor(function, model, size, dynamic);
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid = blocks * model.multiprocessors;
  }
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit,
                                                   CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* shared, CUfunction handle, int blocks,
                                                 int) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (shared == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  int each = context->device->model.shared_per_multiprocessor / blocks - kReservedShared -
             static_shared_bytes(function);
  *shared = static_cast<size_t>(std::clamp(each, 0, context->device->model.shared_per_block_optin));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig*) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context->device->model.major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  *size = 8;  // the portable cluster size of the programming guide
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                      const CUlaunchConfig* config) {
  Context* context;
  SIMGPU_TRY(enter(context));
  Function* function;
  SIMGPU_TRY(find_function(handle, function));
  if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context->device->model.major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  *clusters = std::max(context->device->model.multiprocessors / 8, 1);
  return CUDA_SUCCESS;
}
