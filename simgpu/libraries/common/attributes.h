// Attributes of an opaque descriptor, by number, as cublasLt's descriptors keep them: what was set
// can be read back; nothing is interpreted here.
#pragma once

#include <cstdint>
#include <cstring>

namespace simgpu {

class Attributes {
 public:
  static constexpr int kCount = 64;
  static constexpr std::size_t kMaxSize = 16;

  bool set(int attribute, const void* value, std::size_t size) {
    if (attribute < 0 || attribute >= kCount || size > kMaxSize || !value) return false;
    std::memcpy(values_[attribute], value, size);
    sizes_[attribute] = static_cast<std::uint8_t>(size);
    return true;
  }

  // Writes up to `size` bytes; unset attributes read as zero.
  bool get(int attribute, void* value, std::size_t size, std::size_t* written) const {
    if (attribute < 0 || attribute >= kCount) return false;
    const std::size_t stored =
        sizes_[attribute] ? sizes_[attribute] : (size < kMaxSize ? size : kMaxSize);
    if (written) *written = stored;
    if (size == 0) return written != nullptr;
    if (!value || size < stored) return false;
    std::memcpy(value, values_[attribute], stored);
    return true;
  }

 private:
  std::uint8_t values_[kCount][kMaxSize] = {};
  std::uint8_t sizes_[kCount] = {};
};

}  // namespace simgpu
