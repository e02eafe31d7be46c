// The bytes that copies and sets move, wherever they lie: device memory whose contents are kept
// only in part, or real memory (host, pinned, managed).
#ifndef SIMGPU_DRIVER_COPY_H
#define SIMGPU_DRIVER_COPY_H

#include <cstddef>
#include <cstdint>

#include "memory.h"

namespace simgpu {

enum class Side { kAny, kHost, kDevice };

// CUDA_ERROR_INVALID_VALUE where a device range is not allocated, or where a side that must be
// device-accessible is pageable host memory.
CUresult check_range(std::uint64_t address, std::size_t size, Side side);

// Moves the bytes of checked ranges. `keep` is off for parts of a transfer too large to remember.
void move_bytes(std::uint64_t to, std::uint64_t from, std::size_t size, bool keep = true);
void set_bytes(std::uint64_t address, const void* pattern, std::size_t pattern_size,
               std::size_t size, bool keep = true);

// Device contents through every mapping of the same memory.
std::size_t read_contents(std::uint64_t address, void* data, std::size_t size, std::size_t* stale);
void write_contents(std::uint64_t address, const void* data, std::size_t size);
void forget_contents(std::uint64_t address, std::size_t size);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_COPY_H
