#include "symbols/python_lines.h"

#include <cstddef>

namespace vramtrack {
namespace {

uint8_t unsigned_at(std::string_view table, size_t at) {
  return static_cast<uint8_t>(table[at]);
}
int signed_at(std::string_view table, size_t at) {
  const int value = unsigned_at(table, at);
  return value < 128 ? value : value - 256;
}

uint32_t as_line(int64_t line) {
  return line > 0 && line <= UINT32_MAX ? static_cast<uint32_t>(line) : 0;
}

// Pairs (bytes of code, lines), both relative; lines come into force after the bytes.
uint32_t line_from_lnotab(std::string_view table, int64_t line, uint32_t offset) {
  uint64_t address = 0;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    address += unsigned_at(table, at);
    if (address > offset) break;
    line += signed_at(table, at + 1);
  }
  return as_line(line);
}

// Pairs (bytes of code, lines): the lines hold for just these bytes; -128: they have no line.
uint32_t line_from_pep626(std::string_view table, int64_t line, uint32_t offset) {
  constexpr int kNoLine = -128;
  uint64_t end = 0;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    end += unsigned_at(table, at);
    const int step = signed_at(table, at + 1);
    if (step != kNoLine) line += step;
    if (offset < end) return step == kNoLine ? 0 : as_line(line);
  }
  return 0;
}

// Entries of one byte 1CCCCLLL (kind, code units - 1) and what the kind says; continuation bytes
// have the top bit clear.
class LocationTable {
 public:
  explicit LocationTable(std::string_view bytes) : bytes_(bytes) {}

  uint32_t line(int64_t line, uint32_t offset) {
    constexpr unsigned kNoLocation = 15;
    uint64_t end = 0;
    while (at_ < bytes_.size()) {
      const uint8_t head = unsigned_at(bytes_, at_++);
      const unsigned kind = head >> 3 & 15;
      end += uint64_t{2} * ((head & 7U) + 1);
      line += line_step(kind);
      if (offset < end) return kind == kNoLocation ? 0 : as_line(line);
      while (at_ < bytes_.size() && (unsigned_at(bytes_, at_) & 0x80) == 0) ++at_;
    }
    return 0;
  }

 private:
  int64_t line_step(unsigned kind) {
    if (kind >= 10 && kind <= 12) return kind - 10;
    if (kind == 13 || kind == 14) return signed_number();
    return 0;
  }

  int64_t signed_number() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < bytes_.size() && shift < 60; shift += 6) {
      const uint8_t part = unsigned_at(bytes_, at_++);
      value |= static_cast<uint64_t>(part & 0x3f) << shift;
      if ((part & 0x40) == 0) break;
    }
    const auto magnitude = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace

uint32_t python_line(uint32_t python_minor, std::string_view table, uint32_t first_line,
                     uint32_t offset) {
  if (python_minor <= 9) return line_from_lnotab(table, first_line, offset);
  if (python_minor == 10) return line_from_pep626(table, first_line, offset);
  return LocationTable(table).line(first_line, offset);
}

}  // namespace vramtrack
