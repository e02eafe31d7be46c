// How a pool grows and shrinks.
//
// ASSUMED: growth by 32 MiB, or by the request rounded up to 2 MiB where that is more; units of
// 512 bytes inside; best fit. The driver documents none of these. Documented and kept: memory above
// the release threshold goes back at the next synchronisation, and cuMemPoolTrimTo at once, in
// both cases only what nothing lives in.
#include "pool.h"

#include <algorithm>

#include "tables.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kGrowth = std::uint64_t{32} << 20;
constexpr std::uint64_t kGrowthUnit = std::uint64_t{2} << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

// Best fit over all chunks; 0 where none fits.
std::uint64_t cut(Pool* pool, std::uint64_t size) {
  PoolChunk* best = nullptr;
  std::map<std::uint64_t, std::uint64_t>::iterator place;
  for (auto& [start, chunk] : pool->chunks)
    for (auto range = chunk.free.begin(); range != chunk.free.end(); ++range)
      if (range->second >= size && (best == nullptr || range->second < place->second)) {
        best = &chunk;
        place = range;
      }
  if (best == nullptr) return 0;
  auto [address, length] = *place;
  best->free.erase(place);
  if (length > size) best->free[address + size] = length - size;
  if (best->used == 0) pool->device->idle_chunks.fetch_sub(1);
  best->used += size;
  return address;
}

CUresult grow(Pool* pool, std::uint64_t size, const char* operation) {
  if (pool->maximum != 0 && pool->reserved + size > pool->maximum) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t address = driver().addresses.take(size, kGrowthUnit);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = pool->device->ledger.charge(Kind::kPool, size, operation, address);
  if (result != CUDA_SUCCESS) {
    driver().addresses.give_back(address, size);
    return result;
  }
  PoolChunk& chunk = pool->chunks[address];
  chunk.size = size;
  chunk.free[address] = size;
  pool->device->idle_chunks.fetch_add(1);
  pool->reserved += size;
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  return CUDA_SUCCESS;
}

void trim_locked(Pool* pool, std::uint64_t keep, const char* operation) {
  for (auto chunk = pool->chunks.begin(); chunk != pool->chunks.end() && pool->reserved > keep;) {
    std::uint64_t size = chunk->second.size;
    if (chunk->second.used != 0 || pool->reserved - size < keep) {
      ++chunk;
      continue;
    }
    driver().contents.forget(chunk->first, size);
    driver().addresses.give_back(chunk->first, size);
    pool->device->ledger.credit(Kind::kPool, size, operation, chunk->first);
    pool->device->idle_chunks.fetch_sub(1);
    pool->reserved -= size;
    chunk = pool->chunks.erase(chunk);
  }
}

std::uint64_t occupied(std::uint64_t size) {
  return round_up(size, kAllocationAlignment);
}

}  // namespace

CUresult pool_allocate(Pool* pool, Context* context, std::uint64_t size, const char* operation,
                       std::uint64_t& address) {
  if (size > std::uint64_t{1} << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t cut_size = occupied(size);
  {
    std::lock_guard lock(pool->mutex);
    address = cut(pool, cut_size);
    if (address == 0) {
      std::uint64_t exact = round_up(cut_size, kGrowthUnit);
      CUresult result = grow(pool, std::max(exact, kGrowth), operation);
      if (result != CUDA_SUCCESS && exact < kGrowth) result = grow(pool, exact, operation);
      if (result != CUDA_SUCCESS) {
        // What this pool holds idle is given up before the request fails.
        trim_locked(pool, 0, operation);
        result = grow(pool, exact, operation);
      }
      SIMGPU_TRY(result);
      address = cut(pool, cut_size);
    }
    pool->used += cut_size;
    pool->used_high = std::max(pool->used_high, pool->used);
  }
  pool->device->ledger.pool_used(static_cast<std::int64_t>(cut_size), operation, address);
  registry().add({.address = address,
                  .size = size,
                  .source = Source::kPool,
                  .context = context,
                  .device = pool->device,
                  .pool = pool});
  return CUDA_SUCCESS;
}

void release_to_pool(const Allocation& allocation, const char* operation) {
  Pool* pool = allocation.pool;
  std::uint64_t address = allocation.address;
  std::uint64_t size = occupied(allocation.size);
  driver().contents.forget(address, size);
  std::lock_guard lock(pool->mutex);
  pool->device->ledger.pool_used(-static_cast<std::int64_t>(size), operation, address);
  pool->used -= size;
  auto at = pool->chunks.upper_bound(address);
  if (at == pool->chunks.begin()) return;
  PoolChunk& chunk = std::prev(at)->second;
  chunk.used -= size;
  if (chunk.used == 0) pool->device->idle_chunks.fetch_add(1);
  auto next = chunk.free.lower_bound(address);
  if (next != chunk.free.end() && address + size == next->first) {
    size += next->second;
    next = chunk.free.erase(next);
  }
  if (next != chunk.free.begin() && std::prev(next)->first + std::prev(next)->second == address)
    std::prev(next)->second += size;
  else
    chunk.free[address] = size;
  if (pool->destroyed) trim_locked(pool, 0, "cuMemPoolDestroy");
}

void trim_pool(Pool* pool, std::uint64_t keep, const char* operation) {
  std::lock_guard lock(pool->mutex);
  trim_locked(pool, keep, operation);
}

void trim_pools_on_synchronise(Device* device) {
  if (likely(device->idle_chunks.load(std::memory_order_relaxed) == 0)) return;
  driver().tables->pools.for_each([&](Pool* pool) {
    if (pool->device != device) return;
    std::lock_guard lock(pool->mutex);
    trim_locked(pool, pool->release_threshold, "synchronise");
  });
}

void trim_pools_on_reset(Device* device) {
  driver().tables->pools.for_each([&](Pool* pool) {
    if (pool->device == device) trim_pool(pool, 0, "context end");
  });
}

void create_default_pool(Device* device) {
  Pool* pool = driver().tables->pools.create();
  pool->device = device;
  pool->is_default = true;
  device->default_pool = pool;
  device->current_pool = pool;
}

}  // namespace simgpu
