// Feeds arbitrary bytes to the snapshot importer, as a pickle or as JSON by their first byte, and
// passes over what it makes of them. Any refusal is fine; a crash, a hang or memory is not.
#include <cstddef>
#include <cstdint>
#include <span>

#include "import/snapshot_recording.h"
#include "trace/input_error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using vramtrack::SnapshotRecording;
  if (size == 0) return 0;
  const auto source = vramtrack::ByteSource::from_memory(std::span(data, size));
  const bool json = data[0] == '{' || data[0] == '[';
  try {
    const SnapshotRecording recording(
        *source, json ? SnapshotRecording::Encoding::json : SnapshotRecording::Encoding::pickle,
        "fuzz");
    uint64_t sequence = 0;
    recording.for_each([&](const vramtrack::Event& event) {
      if (event.sequence != sequence++) __builtin_trap();
      return true;
    });
  } catch (const vramtrack::InputError&) {
  }
  return 0;
}
