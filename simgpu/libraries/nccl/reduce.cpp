#include "nccl/reduce.h"

#include <cstring>

#include "kernels/scalar.h"

namespace simgpu {
namespace {

enum Operator : int { kSum, kProduct, kMaximum, kMinimum, kAverage };

struct Type {
  std::size_t bytes;
  ScalarKind kind;
  bool followed;
};

// By ncclDataType_t. The two unsigned kinds that no kernel has are read here.
constexpr int kUint32 = 3, kUint64 = 5;
constexpr Type kTypes[] = {
    {1, ScalarKind::kInt8, true},     {1, ScalarKind::kUint8, true}, {4, ScalarKind::kInt32, true},
    {4, ScalarKind::kInt32, true},    {8, ScalarKind::kInt64, true}, {8, ScalarKind::kInt64, true},
    {2, ScalarKind::kHalf, true},     {4, ScalarKind::kFloat, true}, {8, ScalarKind::kDouble, true},
    {2, ScalarKind::kBfloat16, true}, {1, ScalarKind::kInt8, false},  // the 8-bit floats
    {1, ScalarKind::kInt8, false},
};
constexpr int kTypeCount = sizeof kTypes / sizeof *kTypes;

template <class T>
T read(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Scalar load(const std::uint8_t* from, int type) {
  if (type == kUint32) return read<std::uint32_t>(from);
  if (type == kUint64) return static_cast<Scalar>(read<std::uint64_t>(from));
  return load_scalar(from, kTypes[type].kind);
}

void store(std::uint8_t* to, int type, Scalar value) {
  if (type == kUint32 || type == kUint64) {
    const auto bits = static_cast<std::uint64_t>(value);
    std::memcpy(to, &bits, kTypes[type].bytes);
  } else {
    store_scalar(to, kTypes[type].kind, value);
  }
}

Scalar combine(Scalar a, Scalar b, int op) {
  switch (op) {
    case kProduct:
      return a * b;
    case kMaximum:
      return a > b ? a : b;
    case kMinimum:
      return a < b ? a : b;
    default:
      return a + b;
  }
}

}  // namespace

std::size_t nccl_type_bytes(int type) {
  return type >= 0 && type < kTypeCount ? kTypes[type].bytes : 1;
}

bool nccl_averages(int op) {
  return op == kAverage;
}

bool nccl_reduce(std::uint8_t* into, const std::uint8_t* from, std::size_t count, int type,
                 int op) {
  if (type < 0 || type >= kTypeCount || !kTypes[type].followed || op < kSum || op > kAverage)
    return false;
  for (std::size_t i = 0; i < count; ++i, into += kTypes[type].bytes, from += kTypes[type].bytes)
    store(into, type, combine(load(into, type), load(from, type), op));
  return true;
}

void nccl_divide(std::uint8_t* values, std::size_t count, int type, int by) {
  for (std::size_t i = 0; i < count; ++i, values += kTypes[type].bytes)
    store(values, type, load(values, type) / by);
}

}  // namespace simgpu
