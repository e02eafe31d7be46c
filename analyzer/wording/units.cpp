#include "wording/units.h"

#include <fmt/format.h>

#include <cmath>

namespace vramtrack {
namespace {

constexpr Unit kUnits[] = {{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}};

}  // namespace

std::string Unit::number(uint64_t amount) const {
  return bytes == 1 ? fmt::format("{}", amount)
                    : fmt::format("{:.2f}", static_cast<double>(amount) / bytes);
}

std::string Unit::signed_number(int64_t amount) const {
  return bytes == 1 ? fmt::format("{:+}", amount)
                    : fmt::format("{:+.2f}", static_cast<double>(amount) / bytes);
}

std::string Unit::quantity(uint64_t amount) const {
  return fmt::format("{} {}", number(amount), name);
}

Unit unit_for(uint64_t largest) {
  for (const Unit& unit : kUnits) {
    if (static_cast<double>(largest) >= unit.bytes) return unit;
  }
  return {"bytes", 1};
}

std::string quantity(uint64_t bytes) {
  return unit_for(bytes).quantity(bytes);
}

std::string signed_quantity(int64_t bytes) {
  const auto magnitude = static_cast<uint64_t>(bytes);
  return bytes < 0 ? "-" + quantity(0 - magnitude) : "+" + quantity(magnitude);
}

std::string rounded_quantity(long double bytes) {
  constexpr long double kTwoTo64 = 18446744073709551616.0L;
  const long double rounded = std::round(std::fabs(bytes));
  const uint64_t magnitude = rounded < kTwoTo64 ? static_cast<uint64_t>(rounded) : UINT64_MAX;
  return (bytes < 0 ? "-" : "") + quantity(magnitude);
}

std::string percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string seconds(uint64_t nanoseconds) {
  return fmt::format("{:.3f} s", static_cast<double>(nanoseconds) * 1e-9);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string counted(uint64_t number, std::string_view noun) {
  const std::string_view ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", grouped(number), noun, ending);
}

}  // namespace vramtrack
