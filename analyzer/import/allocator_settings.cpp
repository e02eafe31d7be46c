#include "import/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

namespace vramtrack {
namespace {

constexpr std::string_view kMetadataPrefix = "allocator.";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t'\"";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_true(std::string_view text) {
  return text == "True" || text == "true" || text == "1";
}

// Splits at commas outside brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto part = trim(text.substr(start, i - start)); !part.empty())
        parts.push_back(part);
      start = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']' && depth != 0) {
      --depth;
    }
  }
  return parts;
}

std::pair<std::string_view, std::string_view> key_and_value(std::string_view part) {
  const size_t colon = part.find(':');
  if (colon == std::string_view::npos) return {part, {}};
  return {trim(part.substr(0, colon)), trim(part.substr(colon + 1))};
}

size_t interval_of(uint64_t bytes) {
  const int exponent = 63 - std::countl_zero(bytes | 1);
  return static_cast<size_t>(std::clamp(exponent - 20, 0, 15));
}

uint64_t round_up(uint64_t value, uint64_t step) {
  if (value > ~uint64_t{0} - step) return value;
  return (value + step - 1) / step * step;
}

}  // namespace

AllocatorSettings AllocatorSettings::parse(std::string_view text) {
  AllocatorSettings settings;
  for (const std::string_view part : split(text)) {
    const auto [key, value] = key_and_value(part);
    settings.set(key, value);
  }
  return settings;
}

void AllocatorSettings::set(std::string_view key, std::string_view value) {
  const auto bytes_of_mb = [&](uint64_t& to) {
    if (const auto mb = number<uint64_t>(value); mb && *mb < (1ULL << 40)) {
      to = *mb * kMiB;
    } else {
      unknown.push_back(fmt::format("{}:{}", key, value));
    }
  };
  if (key == "expandable_segments") {
    expandable_segments = is_true(value);
  } else if (key == "max_split_size_mb") {
    bytes_of_mb(max_split_size);
  } else if (key == "max_non_split_rounding_mb") {
    bytes_of_mb(max_non_split_rounding);
  } else if (key == "large_segment_size_mb") {
    bytes_of_mb(large_segment_size);
  } else if (key == "garbage_collection_threshold") {
    if (const auto threshold = number<double>(value)) {
      garbage_collection_threshold = *threshold;
    } else {
      unknown.push_back(fmt::format("{}:{}", key, value));
    }
  } else if (key == "roundup_power2_divisions") {
    set_divisions(value);
  } else if (key == "backend") {
    backend = value;
  } else {
    unknown.push_back(value.empty() ? std::string(key) : fmt::format("{}:{}", key, value));
  }
}

void AllocatorSettings::set_divisions(std::string_view value) {
  if (const auto all = number<uint64_t>(value)) {
    roundup_power2_divisions.fill(*all);
    return;
  }
  if (value.size() < 2 || value.front() != '[' || value.back() != ']') {
    unknown.push_back(fmt::format("roundup_power2_divisions:{}", value));
    return;
  }
  size_t next = 0;
  for (const std::string_view part : split(value.substr(1, value.size() - 2))) {
    const auto [size, count] = key_and_value(part);
    const auto divisions_here = number<uint64_t>(count);
    const auto megabytes = number<uint64_t>(size);
    if (!divisions_here || (!megabytes && size != ">")) {
      unknown.push_back(fmt::format("roundup_power2_divisions:{}", part));
      continue;
    }
    const size_t end = megabytes ? interval_of(std::min(*megabytes, uint64_t{1} << 40) * kMiB) + 1
                                 : roundup_power2_divisions.size();
    // The first size named also speaks for all smaller ones, a later one for itself.
    const size_t begin = megabytes && next != 0 ? end - 1 : next;
    for (size_t i = begin; i < end; ++i) roundup_power2_divisions[i] = *divisions_here;
    next = end;
  }
}

AllocatorSettings AllocatorSettings::of_recording(
    std::string_view text, const std::vector<std::pair<std::string, std::string>>& metadata) {
  AllocatorSettings settings = parse(text);
  for (const auto& [name, value] : metadata) {
    if (!name.starts_with(kMetadataPrefix)) continue;
    const std::string_view key = std::string_view(name).substr(kMetadataPrefix.size());
    if (key == "expandable_segments") {
      settings.expandable_segments = is_true(value);
    } else if (key == "max_split_size") {
      const auto bytes = number<int64_t>(value);
      if (bytes) settings.max_split_size = *bytes < 0 ? kUnlimited : static_cast<uint64_t>(*bytes);
    } else if (key == "garbage_collection_threshold") {
      if (const auto threshold = number<double>(value))
        settings.garbage_collection_threshold = *threshold;
    } else if (key.starts_with("roundup_power2_divisions.")) {
      const auto megabytes = number<uint64_t>(key.substr(key.find('.') + 1));
      const auto count = number<uint64_t>(value);
      if (megabytes && count && *megabytes < (1ULL << 40))
        settings.roundup_power2_divisions[interval_of(*megabytes * kMiB)] = *count;
    }
  }
  return settings;
}

std::string AllocatorSettings::text() const {
  std::vector<std::string> parts;
  if (backend != "native") parts.push_back(fmt::format("backend:{}", backend));
  if (expandable_segments) parts.emplace_back("expandable_segments:True");
  if (max_split_size != kUnlimited)
    parts.push_back(fmt::format("max_split_size_mb:{}", max_split_size / kMiB));
  if (max_non_split_rounding != kLargeSegmentBytes)
    parts.push_back(fmt::format("max_non_split_rounding_mb:{}", max_non_split_rounding / kMiB));
  if (large_segment_size != kLargeSegmentBytes)
    parts.push_back(fmt::format("large_segment_size_mb:{}", large_segment_size / kMiB));
  if (garbage_collection_threshold > 0)
    parts.push_back(fmt::format("garbage_collection_threshold:{}", garbage_collection_threshold));
  const auto& table = roundup_power2_divisions;
  if (std::any_of(table.begin(), table.end(), [](uint64_t n) { return n > 1; })) {
    if (std::all_of(table.begin(), table.end(), [&](uint64_t n) { return n == table[0]; })) {
      parts.push_back(fmt::format("roundup_power2_divisions:{}", table[0]));
    } else {
      std::vector<std::string> pairs;
      for (size_t i = 0; i < table.size(); ++i)
        pairs.push_back(fmt::format("{}:{}", uint64_t{1} << i, table[i]));
      parts.push_back(fmt::format("roundup_power2_divisions:[{}]", fmt::join(pairs, ",")));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

uint64_t AllocatorSettings::divisions(uint64_t size) const {
  return roundup_power2_divisions[interval_of(size)];
}

uint64_t AllocatorSettings::round_size(uint64_t requested) const {
  if (requested < kMinBlockBytes) return kMinBlockBytes;
  const uint64_t parts = divisions(requested);
  if (parts > 1 && requested > kMinBlockBytes * parts) {
    const uint64_t floor = std::bit_floor(requested);
    const uint64_t step = floor / std::bit_floor(parts);
    if (floor == requested) return requested;
    if (step == 0) return floor * 2;
    return round_up(requested, step);
  }
  return round_up(requested, kMinBlockBytes);
}

uint64_t AllocatorSettings::allocation_size(uint64_t rounded) const {
  if (rounded <= kSmallPoolMax) return kSmallSegmentBytes;
  if (rounded < kMinLargeRequest) return large_segment_size;
  return round_up(rounded, kSegmentRounding);
}

bool AllocatorSettings::should_split(uint64_t block, uint64_t rounded, bool small_pool,
                                     bool expandable) const {
  const uint64_t rest = block - rounded;
  if (small_pool || expandable) return rest >= kMinBlockBytes;
  return rounded < max_split_size && rest > kSmallPoolMax;
}

}  // namespace vramtrack
