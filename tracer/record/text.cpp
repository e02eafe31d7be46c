#include "record/text.h"
#include "record/slice.h"

namespace vramtrack {
namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 where it is none.
size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  size_t length = 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (first == 0xe0 && second < 0xa0) return 0;  // overlong
  if (first == 0xed && second > 0x9f) return 0;  // surrogate
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

}  // namespace

void Text::put(char c) {
  if (size_ + 1 >= capacity_) {
    full_ = true;
    return;
  }
  data_[size_++] = c;
  data_[size_] = '\0';
}

Text& Text::add(std::string_view text) {
  for (const char c : text) put(c);
  return *this;
}

Text& Text::add(uint64_t number) {
  return add_padded(number, 1);
}

Text& Text::add_padded(uint64_t number, unsigned digits) {
  char reversed[20];
  unsigned count = 0;
  do {
    reversed[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  for (unsigned i = count; i < digits; ++i) put('0');
  while (count != 0) put(reversed[--count]);
  return *this;
}

Text& Text::add_json(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  put('"');
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char c = text[0];
    if (length > 1) {
      add(slice(text, 0, length));
      text.remove_prefix(length);
      continue;
    }
    if (length == 0) {
      put('?');
    } else if (c == '"' || c == '\\') {
      put('\\');
      put(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      add("\\u00");
      put(kHex[c >> 4]);
      put(kHex[c & 15]);
    } else {
      put(c);
    }
    text.remove_prefix(1);
  }
  put('"');
  return *this;
}

Text& Text::add_size(uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) return add(bytes).add(" bytes");
  unsigned unit = 0;
  uint64_t divisor = 1024;
  while (unit < 2 && bytes / divisor >= 1024) {
    divisor *= 1024;
    ++unit;
  }
  // Two decimals, rounded; split so that nothing overflows.
  uint64_t whole = bytes / divisor;
  uint64_t hundredths = ((bytes % divisor) * 100 + divisor / 2) / divisor;
  if (hundredths == 100) {
    ++whole;
    hundredths = 0;
  }
  return add(whole).add(".").add_padded(hundredths, 2).add(" ").add(kUnits[unit]);
}

}  // namespace vramtrack
