// The element-wise functions that are followed: what a functor's type says about its operation, its
// operand types and the constants it carries.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/scalar.h"

namespace simgpu {

enum class Operation : std::uint8_t {
  kFill,
  kCopy,
  kNot,  // logical, and bitwise on bool
  kBitNot,
  kBitAnd,
  kBitOr,
  kBitXor,
  kAnd,  // logical
  kOr,
  kXor,
  kAdd,  // left + scale * right
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kCompare,       // by the functor's OpType
  kCompareEqual,  // by the functor's EqOpType
  kMaskedFill,
  kWhere,  // first ? second : third
};

struct Functor {
  Operation operation;
  int inputs;  // tensors it reads
  ScalarKind input[3];
  ScalarKind output;
  ScalarKind constant;      // type of the constants below
  int constant_side = -1;   // operand that a constant replaces: 0 left, 1 right, -1 none
  int constant_offset = 0;  // bytes into the functor
  int scale_offset = -1;    // kAdd: bytes into the functor, -1 where the scale is 1
  int selector_offset = 0;  // kCompare*: bytes into the functor
  int size = 1;             // of the functor itself
};

// Nothing where the functor is not followed.
std::optional<Functor> parse_functor(std::string_view type);

// `operands` are the tensors' elements in order; `state` is the functor's bytes.
Scalar apply_functor(const Functor& functor, const unsigned char* state, const Scalar* operands);

}  // namespace simgpu
