// Builds text in a buffer of fixed size, for file names and JSON: the shim must not use the host's
// heap. What does not fit is cut off, and full() says so.
#ifndef VRAMTRACK_TRACER_RECORD_TEXT_H
#define VRAMTRACK_TRACER_RECORD_TEXT_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vramtrack {

class Text {
 public:
  Text(char* buffer, size_t capacity) : data_(buffer), capacity_(capacity) { data_[0] = '\0'; }

  Text& add(std::string_view text);
  Text& add(uint64_t number);
  Text& add_padded(uint64_t number, unsigned digits);
  Text& add_json(std::string_view text);  // quoted and escaped; bytes that are not UTF-8 become '?'
  Text& add_size(uint64_t bytes);         // "1.50 GiB"
  void clear() { data_[size_ = 0] = '\0'; }

  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] const char* c_str() const { return data_; }
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }

 private:
  void put(char c);

  char* data_;
  size_t capacity_;
  size_t size_ = 0;
  bool full_ = false;
};

template <size_t N>
class FixedText : public Text {
 public:
  FixedText() : Text(buffer_, N) {}

 private:
  char buffer_[N];
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_TEXT_H
