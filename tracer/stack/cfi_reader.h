// Reads the encodings of .eh_frame: LEB128 numbers and encoded pointers. The bytes are those of a
// mapped module whose code is running; they are trusted as the host's own unwinder trusts them.
#ifndef VRAMTRACK_TRACER_STACK_CFI_READER_H
#define VRAMTRACK_TRACER_STACK_CFI_READER_H

#include <cstdint>
#include <cstring>

namespace vramtrack {

class CfiReader {
 public:
  CfiReader(uintptr_t at, uintptr_t end) : at_(at), end_(end) {}

  [[nodiscard]] bool more() const { return at_ < end_; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] uintptr_t position() const { return at_; }
  void skip(uint64_t bytes) { at_ = bytes > end_ - at_ ? end_ : at_ + bytes; }

  template <typename T>
  T fixed() {
    T value{};
    if (end_ - at_ < sizeof(T)) {
      ok_ = false;
      at_ = end_;
      return value;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  int64_t sleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0;
    do {
      byte = fixed<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) != 0 && shift < 64);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  // A pointer in DW_EH_PE_* encoding; `data` is what data-relative ones refer to.
  uintptr_t pointer(uint8_t encoding, uintptr_t data) {
    constexpr uint8_t kOmit = 0xff;
    if (encoding == kOmit) return 0;
    const uintptr_t here = at_;
    uintptr_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = fixed<uint64_t>();
        break;
      case 0x01:
        value = uleb();
        break;
      case 0x02:
        value = fixed<uint16_t>();
        break;
      case 0x03:
        value = fixed<uint32_t>();
        break;
      case 0x09:
        value = static_cast<uintptr_t>(sleb());
        break;
      case 0x0a:
        value = static_cast<uintptr_t>(static_cast<int64_t>(fixed<int16_t>()));
        break;
      case 0x0b:
        value = static_cast<uintptr_t>(static_cast<int64_t>(fixed<int32_t>()));
        break;
      default:
        ok_ = false;
    }
    switch (encoding & 0x70) {
      case 0x00:
        return value;
      case 0x10:
        return value + here;
      case 0x30:
        return value + data;
      default:
        ok_ = false;
        return 0;
    }
  }

 private:
  uintptr_t at_;
  uintptr_t end_;
  bool ok_ = true;
};

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_STACK_CFI_READER_H
