#include "printed_message.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vramtrack::test {
namespace {

long double unit_bytes(const char* unit) {
  switch (unit[0]) {
    case 'K':
      return 1024.0L;
    case 'M':
      return 1024.0L * 1024.0L;
    case 'G':
      return 1024.0L * 1024.0L * 1024.0L;
    default:
      return 1.0L;
  }
}

}  // namespace

Printed print_as(double value, const char* unit, char point, const char* between) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.2f", value);
  Printed result;
  result.bytes = std::strtold(digits, nullptr) * unit_bytes(unit);
  for (char* c = digits; *c != 0; ++c) {
    if (*c == '.') *c = point;
  }
  result.text = std::string(digits) + between + unit;
  return result;
}

Printed print_size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes <= 1024) return {std::to_string(bytes) + " bytes", static_cast<long double>(bytes)};
  if (bytes <= 1024UL * 1024) return print_as(value / 1024, "KiB");
  if (bytes <= 1024UL * 1024 * 1024) return print_as(value / 1024 / 1024, "MiB");
  return print_as(value / kGiB, "GiB");
}

std::string with_thousands(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

uint64_t random_bytes(std::mt19937_64& random) {
  // All magnitudes alike, from bytes to hundreds of GiB.
  std::uniform_real_distribution<double> magnitude(6, 38);
  return static_cast<uint64_t>(std::exp2(magnitude(random)));
}

}  // namespace vramtrack::test
