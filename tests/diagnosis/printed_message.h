// Writes out-of-memory messages the way their libraries do, from numbers that a test chose.
#ifndef VRAMTRACK_TESTS_DIAGNOSIS_PRINTED_MESSAGE_H
#define VRAMTRACK_TESTS_DIAGNOSIS_PRINTED_MESSAGE_H

#include <cstdint>
#include <random>
#include <string>

namespace vramtrack::test {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A size as it is printed, and what a reader that rounds nothing must read back from the text.
struct Printed {
  std::string text;
  long double bytes = 0;
};

// PyTorch: "512 bytes" up to 1024, else two decimals of the largest unit that fits.
Printed print_size(uint64_t bytes);
// "%.2f GiB" whatever the size, with other separators and units on demand.
Printed print_as(double value, const char* unit, char point = '.', const char* between = " ");
// "8,589,934,592"
std::string with_thousands(uint64_t value);

uint64_t random_bytes(std::mt19937_64& random);

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_DIAGNOSIS_PRINTED_MESSAGE_H
