// Numbers for people.
#ifndef VRAMTRACK_ANALYZER_WORDING_UNITS_H
#define VRAMTRACK_ANALYZER_WORDING_UNITS_H

#include <cstdint>
#include <string>
#include <string_view>

namespace vramtrack {

struct Unit {
  std::string_view name;
  double bytes;

  // "31.20", of this unit.
  [[nodiscard]] std::string number(uint64_t amount) const;
  [[nodiscard]] std::string signed_number(int64_t amount) const;
  // "31.20 GiB".
  [[nodiscard]] std::string quantity(uint64_t amount) const;
};

// The largest unit of which there is a whole one, as in PyTorch's messages. A table has one unit for
// all its numbers, so that they can be compared by eye.
Unit unit_for(uint64_t largest);

// "31.20 GiB", "300.00 MiB": a size in its own unit.
std::string quantity(uint64_t bytes);
// "+31.20 GiB", "-2.00 MiB".
std::string signed_quantity(int64_t bytes);
// A computed size, rounded to a byte: "31.20 GiB", "-2.00 MiB".
std::string rounded_quantity(long double bytes);
std::string percent(uint64_t part, uint64_t whole);
std::string seconds(uint64_t nanoseconds);
// 1234567 as "1,234,567".
std::string grouped(uint64_t number);
// "1 step", "1,024 steps", "2 processes": a noun whose plural is regular.
std::string counted(uint64_t number, std::string_view noun);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_WORDING_UNITS_H
