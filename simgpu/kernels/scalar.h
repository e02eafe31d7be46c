// Element types of PyTorch kernels, and one value that holds any of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace simgpu {

enum class ScalarKind : std::uint8_t {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kInt32,
  kInt64,
  kHalf,
  kBfloat16,
  kFloat,
  kDouble,
};

// 64 bits of mantissa: exact for every integer and every float that a kernel works on.
using Scalar = long double;
static_assert(sizeof(Scalar) == 16, "the x86-64 extended type");

// By C++ name, as a demangled kernel spells it ("long", "c10::Half").
std::optional<ScalarKind> scalar_kind(std::string_view name);
// By number, as PyTorch's ScalarType counts them (0 is uint8).
std::optional<ScalarKind> scalar_kind(int torch_type);

std::size_t scalar_size(ScalarKind kind);
// The type that arithmetic on `kind` is done in: float for the 16-bit floats, itself otherwise.
ScalarKind compute_kind(ScalarKind kind);

Scalar load_scalar(const void* from, ScalarKind kind);
void store_scalar(void* to, ScalarKind kind, Scalar value);

}  // namespace simgpu
