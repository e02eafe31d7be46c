// Feeds arbitrary bytes to the trace reader, as they are and with the checksums of their frames put
// right, so that mutations reach what lies behind them; then replays what it makes of them. Any
// refusal is fine; a crash, a hang or memory is not.
#include <vramtrack/trace_format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "replay/state.h"
#include "trace/crc32c.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

namespace {

using vramtrack::FrameHeader;

// A header that says format 1 and frames whose checksums fit, wherever a frame's magic stands.
std::vector<uint8_t> repaired(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  if (size < sizeof(vramtrack::FileHeader)) return bytes;
  std::memcpy(bytes.data(), vramtrack::kFileMagic, sizeof vramtrack::kFileMagic);
  const uint32_t version = vramtrack::kFormatVersion;
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  for (size_t at = 0; at + sizeof(FrameHeader) <= size; at += 8) {
    FrameHeader frame{};
    std::memcpy(&frame, bytes.data() + at, sizeof frame);
    if (frame.magic != vramtrack::kFrameMagic) continue;
    if (frame.stored_bytes > size - at - sizeof frame) continue;
    const std::span<const uint8_t> stored(bytes.data() + at + sizeof frame, frame.stored_bytes);
    frame.checksum = vramtrack::crc32c(stored);
    std::memcpy(bytes.data() + at, &frame, sizeof frame);
  }
  return bytes;
}

const std::filesystem::path& scratch() {
  static const std::filesystem::path path = [] {
    char name[] = "/tmp/vramtrack-fuzz-XXXXXX";
    return std::filesystem::path(mkdtemp(name)) / "trace.vrt";
  }();
  return path;
}

void read(const std::vector<uint8_t>& bytes) {
  std::ofstream(scratch(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  try {
    const auto trace = vramtrack::open_trace(scratch());
    vramtrack::MemoryState state;
    uint64_t events = 0;
    trace->for_each([&](const vramtrack::Event& event) {
      state.apply(event);
      return ++events < 100'000;
    });
    for (const int16_t device : state.devices()) {
      const vramtrack::DeviceTotals& totals = state.totals(device);
      // Estimates of a sample may exceed what the driver handed out.
      if (!totals.sampled && totals.in_use != totals.allocated + totals.direct + totals.cached())
        __builtin_trap();
      (void)state.segments(device);
    }
  } catch (const vramtrack::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vramtrack::set_damage_policy(vramtrack::Damage::salvage);
  read({data, data + size});
  read(repaired(data, size));
  return 0;
}
