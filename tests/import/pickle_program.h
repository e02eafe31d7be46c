// Writes pickles opcode by opcode, the well-formed and the hostile.
#ifndef VRAMTRACK_TESTS_IMPORT_PICKLE_PROGRAM_H
#define VRAMTRACK_TESTS_IMPORT_PICKLE_PROGRAM_H

#include <cstdint>
#include <string>
#include <string_view>

#include "import/value_store.h"

namespace vramtrack {

class PickleProgram {
 public:
  explicit PickleProgram(int protocol = 4) {
    if (protocol >= 2) raw("\x80").byte(static_cast<uint8_t>(protocol));
  }
  PickleProgram& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  PickleProgram& byte(uint8_t value) {
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }
  PickleProgram& little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  PickleProgram& text(std::string_view value) {  // SHORT_BINUNICODE
    return raw("\x8c").byte(static_cast<uint8_t>(value.size())).raw(value);
  }
  PickleProgram& number(uint64_t value) {  // LONG1
    return raw("\x8a").byte(9).little(value, 8).byte(0);
  }
  PickleProgram& times(size_t count, std::string_view bytes) {
    for (size_t i = 0; i < count; ++i) bytes_ += bytes;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A pickle and the store that its value lies in.
struct Unpickled {
  explicit Unpickled(std::string bytes);
  std::string bytes;
  ValueStore store;
  Value value;
};

// What the reader says about it; empty where it reads it.
std::string refusal(const std::string& bytes);

}  // namespace vramtrack

#endif  // VRAMTRACK_TESTS_IMPORT_PICKLE_PROGRAM_H
