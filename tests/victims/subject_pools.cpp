// Stream-ordered allocation: the default pool, a pool of its own, trimming, destruction with blocks
// inside.
#include <cuda_runtime_api.h>

#include "subjects.h"
#include "witness.h"

namespace victims {
namespace {

uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr name) {
  uint64_t value = 0;
  SUCCEEDS(cudaMemPoolGetAttribute(pool, name, &value));
  return value;
}

// The pool's own account, which a tracer should agree with.
void say_pool(const char* moment, cudaMemPool_t pool) {
  say_raw("pool",
          "\"moment\":\"" + std::string(moment) + "\",\"reserved\":" +
              std::to_string(attribute(pool, cudaMemPoolAttrReservedMemCurrent)) +
              ",\"used\":" + std::to_string(attribute(pool, cudaMemPoolAttrUsedMemCurrent)));
}

cudaMemPool_t own_pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t pool = nullptr;
  SUCCEEDS(cudaMemPoolCreate(&pool, &properties));
  uint64_t keep_all = UINT64_MAX;
  SUCCEEDS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  return pool;
}

}  // namespace

void async_pools() {
  VICTIM_FRAME;
  constexpr size_t kBlock = 5 << 20;
  cudaStream_t stream = nullptr;
  SUCCEEDS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaMemPool_t pool = own_pool();
  void* blocks[4] = {};
  for (void*& block : blocks) {
    ALLOCATES(cudaMallocFromPoolAsync(&block, kBlock, pool, stream), "pool", block, kBlock);
  }
  say_pool("filled", pool);
  for (void* block : blocks) {
    FREES(cudaFreeAsync(block, stream), "pool", block, kBlock);
  }
  SUCCEEDS(cudaStreamSynchronize(stream));
  say_pool("kept", pool);

  // What was kept is used again: reserved does not grow.
  void* again = nullptr;
  ALLOCATES(cudaMallocFromPoolAsync(&again, kBlock, pool, stream), "pool", again, kBlock);
  say_pool("reused", pool);
  // A block of a pool may be given to cudaFree as well.
  FREES(cudaFree(again), "pool", again, kBlock);
  SUCCEEDS(cudaMemPoolTrimTo(pool, 0));
  say_pool("trimmed", pool);
  SUCCEEDS(cudaMemPoolDestroy(pool));

  void* from_default = nullptr;
  ALLOCATES(cudaMallocAsync(&from_default, 12345, stream), "pool", from_default, 12345);
  FREES(cudaFreeAsync(from_default, stream), "pool", from_default, 12345);
  SUCCEEDS(cudaStreamSynchronize(stream));
  SUCCEEDS(cudaDeviceGetDefaultMemPool(&pool, 0));
  SUCCEEDS(cudaMemPoolTrimTo(pool, 0));
  SUCCEEDS(cudaStreamDestroy(stream));
}

}  // namespace victims
