// string_view::substr without its exception: what lies outside is left out.
#ifndef VRAMTRACK_TRACER_RECORD_SLICE_H
#define VRAMTRACK_TRACER_RECORD_SLICE_H

#include <string_view>

namespace vramtrack {

constexpr std::string_view slice(std::string_view text, size_t from,
                                 size_t count = std::string_view::npos) {
  if (from > text.size()) from = text.size();
  const size_t left = text.size() - from;
  return {text.data() + from, count < left ? count : left};
}

}  // namespace vramtrack

#endif  // VRAMTRACK_TRACER_RECORD_SLICE_H
