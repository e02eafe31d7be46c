// Stream-ordered allocation: the pool's attributes, its growth and its release.
#include <cstdint>

#include "context.h"

using namespace vramtrack::test;

namespace {

std::uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute name) {
  cuuint64_t value = 0;
  OK(cuMemPoolGetAttribute(pool, name, &value));
  return value;
}

void set_threshold(CUmemoryPool pool, cuuint64_t threshold) {
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

}  // namespace

TEST_CASE("a pool holds what it grew by until a synchronisation above the threshold") {
  SimulatedContext gpu;
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, gpu.device));
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const std::size_t free = gpu.free_bytes();

  CUdeviceptr a = 0, b = 0;
  OK(cuMemAllocAsync(&a, 10 * kMiB, stream));
  OK(cuMemAllocAsync(&b, 1000, stream));
  const std::uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  CHECK(reserved >= 10 * kMiB + 1000);
  CHECK(gpu.usage().pool_reserved == reserved);
  CHECK(gpu.free_bytes() == free - reserved);
  CHECK(gpu.usage().device == 0);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 10 * kMiB + 1024);

  OK(cuMemFreeAsync(a, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == reserved);  // b lives in it
  OK(cuMemFreeAsync(b, stream));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == reserved);  // not yet
  OK(cuStreamSynchronize(stream));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  CHECK(gpu.free_bytes() == free);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == reserved);

  cuuint64_t zero = 0, one = 1;
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  OK(cuStreamDestroy(stream));
}

TEST_CASE("a threshold keeps memory, trimming gives it back") {
  SimulatedContext gpu;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device};
  CUmemoryPool pool = nullptr;
  OK(cuMemPoolCreate(&pool, &properties));
  set_threshold(pool, UINT64_MAX);
  CUdeviceptr pointer = 0;
  OK(cuMemAllocFromPoolAsync(&pointer, 100 * kMiB, pool, nullptr));
  OK(cuMemFreeAsync(pointer, nullptr));
  OK(cuCtxSynchronize());
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 100 * kMiB);
  CUdeviceptr again = 0;
  OK(cuMemAllocFromPoolAsync(&again, 100 * kMiB, pool, nullptr));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) ==
        attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));  // reused
  OK(cuMemPoolTrimTo(pool, 0));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 100 * kMiB);  // in use
  OK(cuMemFreeAsync(again, nullptr));
  OK(cuMemPoolTrimTo(pool, 0));
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  CHECK(gpu.usage().pool_reserved == 0);
  OK(cuMemPoolDestroy(pool));
  cuuint64_t value = 0;
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a destroyed pool gives its memory back with its last allocation") {
  SimulatedContext gpu;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device};
  CUmemoryPool pool = nullptr, current = nullptr, standard = nullptr;
  OK(cuMemPoolCreate(&pool, &properties));
  OK(cuDeviceSetMemPool(gpu.device, pool));
  CUdeviceptr pointer = 0;
  OK(cuMemAllocAsync(&pointer, kMiB, nullptr));
  OK(cuMemPoolDestroy(pool));
  OK(cuDeviceGetMemPool(&current, gpu.device));
  OK(cuDeviceGetDefaultMemPool(&standard, gpu.device));
  CHECK(current == standard);
  CHECK(gpu.usage().pool_reserved > 0);
  OK(cuMemFreeAsync(pointer, nullptr));
  CHECK(gpu.usage().pool_reserved == 0);
}

TEST_CASE("a pool meets the card's size") {
  SimulatedContext gpu;
  const std::size_t free = gpu.free_bytes();
  CUdeviceptr pointer = 0;
  CHECK(cuMemAllocAsync(&pointer, free + 1, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr most = 0;
  OK(cuMemAlloc(&most, free - 4 * kMiB));
  OK(cuMemAllocAsync(&pointer, kMiB, nullptr));  // less than the usual growth is left
  OK(cuMemFree(pointer));
  OK(cuCtxSynchronize());
  OK(cuMemFree(most));
  CHECK(gpu.free_bytes() == free);
}
