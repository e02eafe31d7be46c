#include "kernels/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace simgpu {
namespace {

struct Named {
  std::string_view name;
  int torch_type;
  ScalarKind kind;
  std::size_t size;
};

constexpr Named kTypes[] = {
    {"bool", 11, ScalarKind::kBool, 1},          {"signed char", 1, ScalarKind::kInt8, 1},
    {"unsigned char", 0, ScalarKind::kUint8, 1}, {"short", 2, ScalarKind::kInt16, 2},
    {"int", 3, ScalarKind::kInt32, 4},           {"long", 4, ScalarKind::kInt64, 8},
    {"c10::Half", 5, ScalarKind::kHalf, 2},      {"c10::BFloat16", 15, ScalarKind::kBfloat16, 2},
    {"float", 6, ScalarKind::kFloat, 4},         {"double", 7, ScalarKind::kDouble, 8},
};

template <class T>
T get(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void put(void* to, Scalar value) {
  T narrow;
  if constexpr (std::is_integral_v<T>) {
    narrow = std::isfinite(value) ? static_cast<T>(static_cast<std::int64_t>(value)) : T{};
  } else {
    narrow = static_cast<T>(value);
  }
  std::memcpy(to, &narrow, sizeof narrow);
}

float half_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                    : exponent == 0
                        ? std::ldexp(static_cast<float>(fraction), -24)
                        : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14F) {
    return static_cast<std::uint16_t>(
        sign | static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  int exponent;
  const float fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const auto mantissa = static_cast<unsigned>(std::nearbyint(std::ldexp(fraction, 11)));
  return static_cast<std::uint16_t>(sign + (static_cast<unsigned>(exponent + 13) << 10) + mantissa);
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

std::optional<ScalarKind> scalar_kind(std::string_view name) {
  for (const Named& type : kTypes) {
    if (type.name == name) return type.kind;
  }
  return std::nullopt;
}

std::optional<ScalarKind> scalar_kind(int torch_type) {
  for (const Named& type : kTypes) {
    if (type.torch_type == torch_type) return type.kind;
  }
  return std::nullopt;
}

std::size_t scalar_size(ScalarKind kind) {
  for (const Named& type : kTypes) {
    if (type.kind == kind) return type.size;
  }
  return 0;
}

ScalarKind compute_kind(ScalarKind kind) {
  return kind == ScalarKind::kHalf || kind == ScalarKind::kBfloat16 ? ScalarKind::kFloat : kind;
}

Scalar load_scalar(const void* from, ScalarKind kind) {
  switch (kind) {
    case ScalarKind::kBool:
      return get<std::uint8_t>(from) != 0;
    case ScalarKind::kInt8:
      return get<std::int8_t>(from);
    case ScalarKind::kUint8:
      return get<std::uint8_t>(from);
    case ScalarKind::kInt16:
      return get<std::int16_t>(from);
    case ScalarKind::kInt32:
      return get<std::int32_t>(from);
    case ScalarKind::kInt64:
      return static_cast<Scalar>(get<std::int64_t>(from));
    case ScalarKind::kHalf:
      return half_to_float(get<std::uint16_t>(from));
    case ScalarKind::kBfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(from)) << 16);
    case ScalarKind::kFloat:
      return get<float>(from);
    case ScalarKind::kDouble:
      return get<double>(from);
  }
  return 0;
}

void store_scalar(void* to, ScalarKind kind, Scalar value) {
  switch (kind) {
    case ScalarKind::kBool: {
      const std::uint8_t bit = value != 0;
      std::memcpy(to, &bit, 1);
      return;
    }
    case ScalarKind::kInt8:
      return put<std::int8_t>(to, value);
    case ScalarKind::kUint8:
      return put<std::uint8_t>(to, value);
    case ScalarKind::kInt16:
      return put<std::int16_t>(to, value);
    case ScalarKind::kInt32:
      return put<std::int32_t>(to, value);
    case ScalarKind::kInt64:
      return put<std::int64_t>(to, value);
    case ScalarKind::kHalf: {
      const std::uint16_t bits = float_to_half(static_cast<float>(value));
      std::memcpy(to, &bits, sizeof bits);
      return;
    }
    case ScalarKind::kBfloat16: {
      const std::uint16_t bits = float_to_bfloat16(static_cast<float>(value));
      std::memcpy(to, &bits, sizeof bits);
      return;
    }
    case ScalarKind::kFloat:
      return put<float>(to, value);
    case ScalarKind::kDouble:
      return put<double>(to, value);
  }
}

}  // namespace simgpu
