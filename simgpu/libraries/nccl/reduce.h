// Reductions of real bytes, as NCCL's operators define them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

// Bytes of an element of an ncclDataType_t.
std::size_t nccl_type_bytes(int type);

// into[i] = into[i] op from[i]; `op` is sum, product, maximum, minimum or average (then a sum,
// which nccl_divide() ends). False: an operator or a type whose result is not followed.
bool nccl_reduce(std::uint8_t* into, const std::uint8_t* from, std::size_t count, int type, int op);
void nccl_divide(std::uint8_t* values, std::size_t count, int type, int by);
bool nccl_averages(int op);

}  // namespace simgpu
