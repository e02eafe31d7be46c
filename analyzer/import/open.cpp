#include "import/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "import/byte_source.h"
#include "import/snapshot_recording.h"
#include "symbols/resolver.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace vramtrack {
namespace {

enum class Content { trace, pickle, json, other };

struct Known {
  std::string_view start;
  std::string_view name;
};
constexpr Known kOthers[] = {
    {"PK\x03\x04",
     "a zip archive (torch.save writes those; a memory snapshot is written by "
     "torch.cuda.memory._dump_snapshot)"},
    {"\x7f"
     "ELF",
     "a program or library"},
    {"SQLite format 3", "an SQLite database"},
    {"<", "an HTML or XML page"},
    {"BZh", "bzip2 data"},
    {"\xfd"
     "7zXZ",
     "xz data"},
};

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Content content_of(std::string_view head) {
  if (is_trace(std::span(reinterpret_cast<const uint8_t*>(head.data()), head.size())))
    return Content::trace;
  if (head.empty()) return Content::other;
  // Protocol 2 and newer announce themselves; 0 and 1 start with a container.
  const char first = head.front();
  if (first == '\x80' || first == '(' || first == ']' || first == '}') return Content::pickle;
  const size_t text = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (text != std::string_view::npos && (head[text] == '{' || head[text] == '['))
    return Content::json;
  return Content::other;
}

std::string describe(std::string_view head) {
  if (head.empty()) return "an empty file";
  for (const Known& known : kOthers)
    if (head.starts_with(known.start)) return std::string(known.name);
  const bool text = std::all_of(head.begin(), head.begin() + std::min<size_t>(head.size(), 256),
                                [](char c) { return static_cast<unsigned char>(c) >= 9; });
  return text ? "text" : "data of an unknown kind";
}

std::unique_ptr<Recording> open_by_content(const std::filesystem::path& path) {
  const auto source = ByteSource::open(path);
  const std::string_view head = text_of(source->head());
  switch (content_of(head)) {
    case Content::trace:
      return open_trace(path, make_frame_resolver);
    case Content::pickle:
      return std::make_unique<SnapshotRecording>(*source, SnapshotRecording::Encoding::pickle,
                                                 path);
    case Content::json:
      return std::make_unique<SnapshotRecording>(*source, SnapshotRecording::Encoding::json, path);
    case Content::other:
      break;
  }
  throw InputError(fmt::format(
      "is {}; expected a trace of `vramtrack run` (.vrt), or a PyTorch memory snapshot as a pickle "
      "or as JSON, plain or packed with gzip or zstd",
      describe(head)));
}

}  // namespace

std::unique_ptr<Recording> open_recording(const std::filesystem::path& path) {
  try {
    return open_by_content(path);
  } catch (const InputError& error) {
    const std::string_view what = error.what();
    if (what.find(path.string()) != std::string_view::npos) throw;
    throw InputError(fmt::format("{} {}", path.string(), what));
  }
}

}  // namespace vramtrack
