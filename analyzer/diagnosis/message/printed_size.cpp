#include "diagnosis/message/printed_size.h"

#include <array>
#include <cmath>

#include "wording/units.h"

namespace vramtrack {
namespace {

constexpr long double kTwoTo64 = 18446744073709551616.0L;
constexpr size_t kMaxNumberLength = 40;

struct PrintedUnit {
  std::string_view name;
  long double bytes;
};

constexpr long double kKibi = 1024.0L;
constexpr long double kMebi = kKibi * 1024.0L;
constexpr long double kGibi = kMebi * 1024.0L;
constexpr long double kTebi = kGibi * 1024.0L;
constexpr long double kPebi = kTebi * 1024.0L;
constexpr long double kExbi = kPebi * 1024.0L;

// Longest first. What prints "GB" here divides by 1024 (MPS, bitsandbytes, Paddle), and so does
// what prints a bare "G" (TensorFlow, XLA on TPUs).
constexpr std::array kUnits = {
    PrintedUnit{"bytes", 1},   PrintedUnit{"byte", 1},    PrintedUnit{"kib", kKibi},
    PrintedUnit{"mib", kMebi}, PrintedUnit{"gib", kGibi}, PrintedUnit{"tib", kTebi},
    PrintedUnit{"pib", kPebi}, PrintedUnit{"eib", kExbi}, PrintedUnit{"kb", kKibi},
    PrintedUnit{"mb", kMebi},  PrintedUnit{"gb", kGibi},  PrintedUnit{"tb", kTebi},
    PrintedUnit{"pb", kPebi},  PrintedUnit{"eb", kExbi},
};
// One letter is a unit only where no word goes on: "20.1ghbm" no, "20.1gof" no; the recognisers
// that know such texts ask for it.
constexpr std::array kShortUnits = {
    PrintedUnit{"b", 1},     PrintedUnit{"k", kKibi}, PrintedUnit{"m", kMebi},
    PrintedUnit{"g", kGibi}, PrintedUnit{"t", kTebi},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

// "8,589,934,592": every group after the first has three digits.
bool groups_of_thousands(std::string_view digits, char separator) {
  size_t group = digits.find(separator);
  if (group == 0 || group > 3) return false;
  while (group != std::string_view::npos) {
    const size_t next = digits.find(separator, group + 1);
    const size_t length = (next == std::string_view::npos ? digits.size() : next) - group - 1;
    if (length != 3) return false;
    group = next;
  }
  return true;
}

struct Decimal {
  long double value = 0;
  int decimals = 0;
};

// The number in `digits`, which holds digits, dots and commas, in either convention.
std::optional<Decimal> read_decimal(std::string_view digits, bool whole_bytes) {
  char point = 0;
  const size_t dot = digits.rfind('.');
  const size_t comma = digits.rfind(',');
  const bool has_dot = dot != std::string_view::npos;
  const bool has_comma = comma != std::string_view::npos;
  if (has_dot && has_comma) {
    point = dot > comma ? '.' : ',';
  } else if (has_comma) {
    point = groups_of_thousands(digits, ',') ? 0 : ',';
  } else if (has_dot) {
    // "8.589.934.592 bytes", but "1.234 GiB"
    const bool thousands = digits.find('.') != dot || whole_bytes;
    point = thousands && groups_of_thousands(digits, '.') ? 0 : '.';
  }
  Decimal result;
  bool after_point = false;
  for (const char c : digits) {
    if (is_digit(c)) {
      result.value = result.value * 10 + (c - '0');
      if (after_point) ++result.decimals;
    } else if (c == point) {
      if (after_point) return std::nullopt;  // "1.2.3"
      after_point = true;
    }
  }
  result.value /= std::pow(10.0L, static_cast<long double>(result.decimals));
  return result;
}

const PrintedUnit* unit_at(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  for (const PrintedUnit& unit : kUnits) {
    if (rest.starts_with(unit.name)) return &unit;
  }
  for (const PrintedUnit& unit : kShortUnits) {
    if (rest.starts_with(unit.name) && (rest.size() == 1 || !is_letter(rest[1]))) return &unit;
  }
  return nullptr;
}

}  // namespace

bool PrintedSize::underflowed() const {
  return bytes >= kTwoTo64 * 15 / 16 && bytes <= kTwoTo64 * 17 / 16;
}

long double PrintedSize::as_signed() const {
  return underflowed() ? bytes - kTwoTo64 : bytes;
}

PrintedSize operator+(const PrintedSize& a, const PrintedSize& b) {
  return {a.bytes + b.bytes, a.half_step + b.half_step};
}

PrintedSize operator-(const PrintedSize& a, const PrintedSize& b) {
  return {a.bytes - b.bytes, a.half_step + b.half_step};
}

std::optional<SizeToken> read_size(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.' || text[end] == ',')) ++end;
  while (end > at && !is_digit(text[end - 1])) --end;  // the full stop of a sentence
  if (end == at || end - at > kMaxNumberLength) return std::nullopt;
  const PrintedUnit* unit = unit_at(text, end);
  const auto decimal = read_decimal(text.substr(at, end - at), unit && unit->bytes == 1);
  if (!decimal) return std::nullopt;

  SizeToken token;
  token.begin = at;
  token.minus = at > 0 && text[at - 1] == '-';
  token.has_unit = unit != nullptr;
  token.end = end + (unit ? unit->name.size() : 0);
  const long double scale = unit ? unit->bytes : 1;
  token.size.bytes = decimal->value * scale;
  if (decimal->decimals > 0 || scale > 1) {
    token.size.half_step = scale / 2 / std::pow(10.0L, static_cast<long double>(decimal->decimals));
  }
  return token;
}

std::optional<SizeToken> next_size(std::string_view text, size_t from) {
  size_t at = from;
  while (at < text.size()) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    const auto token = read_size(text, at);
    if (token && token->has_unit) return token;
    while (at < text.size() && (is_digit(text[at]) || text[at] == '.' || text[at] == ',')) ++at;
  }
  return std::nullopt;
}

std::string bytes_text(long double bytes) {
  return rounded_quantity(PrintedSize::exact(bytes).as_signed());
}

}  // namespace vramtrack
