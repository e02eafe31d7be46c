// Numbers for people: one unit per table, so that columns can be compared by eye.
#ifndef VRAMTRACK_ANALYZER_REPORT_UNITS_H
#define VRAMTRACK_ANALYZER_REPORT_UNITS_H

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

// GiB from a quarter of one on, then MiB, KiB and bytes.
Unit unit_for(uint64_t largest);

// "31.20 GiB", each in its own unit.
std::string quantity(uint64_t bytes);
std::string percent(uint64_t part, uint64_t whole);
std::string seconds(uint64_t nanoseconds);
// 1234567 as "1,234,567".
std::string grouped(uint64_t number);
// At most `width` characters; "..." stands where the middle was cut out.
std::string shortened(std::string_view text, size_t width);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_REPORT_UNITS_H
