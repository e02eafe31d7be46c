#include "trace/file_header.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "trace/input_error.h"

namespace vramtrack {
namespace {

[[noreturn]] void refuse(const FileBytes& file, std::string_view what) {
  throw InputError(fmt::format("{} {}", file.path(), what));
}

// Lengths and offsets, before anything is read by them.
void check_layout(const FileBytes& file, const FileHeader& header) {
  const bool sane = header.header_bytes >= sizeof(FileHeader) && header.header_bytes <= 4096 &&
                    header.metadata_bytes <= kMaxMetadataBytes &&
                    header.slot_bytes >= sizeof(ChunkHeader) &&
                    header.slot_bytes <= kMaxSlotBytes && header.slot_count <= kMaxSlotCount &&
                    header.window_offset >= header.header_bytes + uint64_t{header.metadata_bytes};
  const uint64_t window_bytes = uint64_t{header.slot_bytes} * header.slot_count;
  if (!sane || header.frames_offset < header.window_offset ||
      header.frames_offset - header.window_offset < window_bytes ||
      header.frames_offset > (uint64_t{1} << 40)) {
    refuse(file, "is damaged: its header contradicts itself");
  }
  // The writer reserves head and window before the first event, so that no kill cuts them.
  if (file.size() < header.frames_offset) {
    refuse(file, fmt::format("is cut short: {} bytes of at least {}; copy it again", file.size(),
                             header.frames_offset));
  }
}

std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void apply_header_field(RecordingInfo& info, const std::string& key, const nlohmann::json& value) {
  if (key == "command" && value.is_array()) {
    for (const nlohmann::json& word : value) info.command.push_back(plain_text(word));
  } else if (value.is_object()) {
    for (const auto& [inner_key, inner] : value.items()) {
      apply_metadata(info, inner_key, plain_text(inner));
    }
  } else {
    apply_metadata(info, key, plain_text(value));
  }
}

}  // namespace

FileHeader read_file_header(const FileBytes& file) {
  FileHeader header{};
  if (file.size() == 0) refuse(file, "is empty: the traced program never reached the GPU");
  uint8_t bytes[sizeof(FileHeader)] = {};
  const size_t got = file.read(0, bytes);
  std::memcpy(&header, bytes, sizeof(header));
  if (std::memcmp(header.magic, kFileMagic, std::min(got, sizeof(kFileMagic))) != 0) {
    refuse(file, "is not a vramtrack trace");
  }
  if (got < sizeof(header)) refuse(file, fmt::format("is cut short: {} bytes", got));
  if (header.format_version > kFormatVersion) {
    refuse(file, fmt::format("was written by a newer vramtrack (format {}, this one reads up to "
                             "{}); update vramtrack to read it",
                             header.format_version, kFormatVersion));
  }
  if (header.format_version == 0) refuse(file, "is damaged: format version 0");
  check_layout(file, header);
  return header;
}

RingHeader read_ring_header(const FileBytes& file, const FileHeader& header) {
  RingHeader ring{};
  if ((header.flags & kFileRing) == 0) return ring;
  uint8_t bytes[sizeof(RingHeader)] = {};
  if (header.header_bytes < sizeof(FileHeader) + sizeof(RingHeader) ||
      !file.read_exactly(sizeof(FileHeader), bytes)) {
    refuse(file, "is damaged: it is a ring and does not say where");
  }
  std::memcpy(&ring, bytes, sizeof(ring));
  const uint64_t window_end =
      header.window_offset + uint64_t{header.slot_bytes} * header.slot_count;
  if (ring.area_count == 0 || ring.area_count > kMaxRingAreas || ring.offset < window_end ||
      ring.area_bytes == 0 || ring.area_bytes > header.frames_offset ||
      ring.offset > header.frames_offset ||
      ring.area_bytes * ring.area_count > header.frames_offset - ring.offset) {
    refuse(file, "is damaged: its ring contradicts itself");
  }
  return ring;
}

RecordingInfo read_info(const FileBytes& file, const FileHeader& header) {
  RecordingInfo info;
  info.source = RecordingInfo::Source::trace;
  info.path = file.path();
  info.format = fmt::format("vramtrack {}", header.format_version);
  info.start_realtime_ns = header.start_realtime_ns;
  info.finished = (header.flags & kFileFinished) != 0;
  info.dropped_events = header.dropped_events;

  std::string text(header.metadata_bytes, '\0');
  const std::span bytes(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (!file.read_exactly(header.header_bytes, bytes)) refuse(file, "is cut short in its header");
  text.resize(text.find_last_not_of('\0') + 1);  // padded to the window
  if (text.empty()) return info;
  const auto fields = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!fields.is_object()) {
    info.notes.emplace_back("the header's description of the run is damaged");
    return info;
  }
  for (const auto& [key, value] : fields.items()) apply_header_field(info, key, value);
  return info;
}

void apply_metadata(RecordingInfo& info, std::string_view key, std::string_view value) {
  const auto yes = [value] { return value == "true" || value == "1" || value == "yes"; };
  if (key == "host") {
    info.host = value;
  } else if (key == "pid") {
    info.pid = std::strtoull(std::string(value).c_str(), nullptr, 10);
  } else if (key == "tool_version") {
    info.tool_version = value;
  } else if (key == "sample_bytes") {
    info.sample_bytes = std::strtoull(std::string(value).c_str(), nullptr, 10);
  } else if (key == "simulated") {
    info.simulated = yes();
  } else if (key == "allocator_settings" || key == "PYTORCH_ALLOC_CONF" ||
             key == "PYTORCH_CUDA_ALLOC_CONF" || key == "PYTORCH_HIP_ALLOC_CONF") {
    if (!value.empty()) info.allocator_settings = value;
  } else if (key == "command" && info.command.empty()) {
    info.command.emplace_back(value);
  } else if (key.starts_with("assumed: ")) {
    // A simulated GPU's values: how often, and in what.
    info.notes.push_back(fmt::format("value assumed, {} times: {}", value, key.substr(9)));
  } else if (key == "SIMGPU_EVENTS" && value.starts_with("late:")) {
    info.notes.push_back(fmt::format(
        "simulated events complete late, seed {}: with another seed the peak may be another",
        value.substr(5)));
  } else if (key == "stopped_after_steady_steps") {
    info.notes.push_back(fmt::format(
        "the program was ended after steady steps, {}: what would have followed was not run",
        value));
  }
  info.metadata.emplace_back(key, value);
}

}  // namespace vramtrack
