#include "trace/crc32c.h"

#include <array>
#include <cstring>

namespace vramtrack {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    }
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

uint32_t by_table(std::span<const uint8_t> data, uint32_t crc) {
  for (const uint8_t byte : data) crc = kTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
  return crc;
}

// The processor's own instruction: a file is checked in about the time it takes to read it.
__attribute__((target("sse4.2"))) uint32_t by_instruction(std::span<const uint8_t> data,
                                                          uint32_t crc) {
  uint64_t wide = crc;
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data.data() + i, sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return by_table(data.subspan(i), static_cast<uint32_t>(wide));
}

}  // namespace

uint32_t crc32c(std::span<const uint8_t> data) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  const uint32_t crc = has_instruction ? by_instruction(data, ~0U) : by_table(data, ~0U);
  return ~crc;
}

}  // namespace vramtrack
