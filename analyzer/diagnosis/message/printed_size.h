// A number of bytes as a message printed it. Messages round ("10.92 GiB" stands for anything within
// 5 MiB of it), so a printed size is an interval, and arithmetic on it has to stay honest about
// that: a verdict that flips inside the interval is on the edge and must say so.
#ifndef VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_PRINTED_SIZE_H
#define VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_PRINTED_SIZE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vramtrack {

struct PrintedSize {
  // long double holds every 64-bit count exactly (x86-64), and counters that ran below zero show up
  // just under 2^64.
  long double bytes = 0;
  long double half_step = 0;  // the true value lies within bytes +- half_step

  static PrintedSize exact(long double bytes) { return {bytes, 0}; }
  [[nodiscard]] long double low() const { return bytes - half_step; }
  [[nodiscard]] long double high() const { return bytes + half_step; }
  // An unsigned counter that went negative: within 1/16 of 2^64.
  [[nodiscard]] bool underflowed() const;
  // What such a counter means when read as signed.
  [[nodiscard]] long double as_signed() const;
};

PrintedSize operator+(const PrintedSize& a, const PrintedSize& b);
PrintedSize operator-(const PrintedSize& a, const PrintedSize& b);

// A size found in a text: where it stood and what it says.
struct SizeToken {
  size_t begin = 0;  // of the first digit
  size_t end = 0;    // after the unit
  bool minus = false;
  bool has_unit = false;
  PrintedSize size;
};

// Reads the number that starts at `at`, which must be a digit, and its unit if one follows, in a
// text in lower case without blanks. Takes "16.00gib", "1900,00mib", "8,589,934,592bytes",
// "3206250496b", "20.1g" and "58982400". Nothing if it is no number (too long, two dots).
std::optional<SizeToken> read_size(std::string_view text, size_t at);

// The next number with a unit at or after `from`.
std::optional<SizeToken> next_size(std::string_view text, size_t from);

// For people: "15.25 GiB", "69.00 MiB"; sizes above 2^63 as what they mean.
std::string bytes_text(long double bytes);

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_DIAGNOSIS_MESSAGE_PRINTED_SIZE_H
