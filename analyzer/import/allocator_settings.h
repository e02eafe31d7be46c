// What PyTorch's caching allocator was told, and the arithmetic that follows from it: how a request
// is rounded, which pool serves it, how large a new segment is, when a block is split.
//
// The rules are PyTorch's documented behaviour; replay/allocator_* builds the simulator on them.
#ifndef VRAMTRACK_ANALYZER_IMPORT_ALLOCATOR_SETTINGS_H
#define VRAMTRACK_ANALYZER_IMPORT_ALLOCATOR_SETTINGS_H

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

inline constexpr uint64_t kMinBlockBytes = 512;
inline constexpr uint64_t kSmallPoolMax = kMiB;  // requests up to here live in the small pool
inline constexpr uint64_t kSmallSegmentBytes = 2 * kMiB;
inline constexpr uint64_t kLargeSegmentBytes = 20 * kMiB;
inline constexpr uint64_t kMinLargeRequest = 10 * kMiB;  // from here on a segment of its own size
inline constexpr uint64_t kSegmentRounding = 2 * kMiB;

struct AllocatorSettings {
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  bool expandable_segments = false;
  uint64_t max_split_size = kUnlimited;
  uint64_t max_non_split_rounding = kLargeSegmentBytes;
  double garbage_collection_threshold = 0;
  uint64_t large_segment_size = kLargeSegmentBytes;
  // By powers of two from 1 MiB on; 0 or 1 means rounding to 512 bytes.
  std::array<uint64_t, 16> roundup_power2_divisions{};
  std::string backend = "native";
  // Keys that this version does not know, and values it could not read.
  std::vector<std::string> unknown;

  bool operator==(const AllocatorSettings&) const = default;

  // The text of PYTORCH_ALLOC_CONF. Never throws: what it does not understand goes to `unknown`.
  static AllocatorSettings parse(std::string_view text);
  // The text, then the resolved values that a snapshot carries ("allocator.max_split_size" ...).
  static AllocatorSettings of_recording(
      std::string_view text, const std::vector<std::pair<std::string, std::string>>& metadata);
  // As one would write it in PYTORCH_ALLOC_CONF; empty for the defaults.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] uint64_t round_size(uint64_t requested) const;
  // How much a new segment for a rounded size asks of the driver.
  [[nodiscard]] uint64_t allocation_size(uint64_t rounded) const;
  // Whether the rest of a free block of `block` bytes is cut off when it serves `rounded` bytes.
  [[nodiscard]] bool should_split(uint64_t block, uint64_t rounded, bool small_pool,
                                  bool expandable) const;
  [[nodiscard]] static bool small_pool(uint64_t rounded) { return rounded <= kSmallPoolMax; }

 private:
  [[nodiscard]] uint64_t divisions(uint64_t size) const;
  void set(std::string_view key, std::string_view value);
  void set_divisions(std::string_view value);
};

}  // namespace vramtrack

#endif  // VRAMTRACK_ANALYZER_IMPORT_ALLOCATOR_SETTINGS_H
