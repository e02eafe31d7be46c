// Files that are no good: each is one clear error, never a crash, and never a wrong number that
// looks right.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <optional>

#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

using namespace vramtrack;
using namespace vramtrack::test;
using Catch::Matchers::Contains;

namespace {

// Small enough to be cut and bent at every byte, with all kinds of records and two threads.
std::vector<uint8_t> small_trace(TraceOptions options = {}) {
  options.slot_bytes = 256;
  options.slot_count = 3;
  TraceWriter writer(std::move(options));
  const uint32_t stack = writer.stack({{"forward", "model.py", 42}});
  writer.metadata("simulated", "true");
  writer.alloc(0x10000, 4096, stack);
  for (uint64_t i = 0; i < 12; ++i) {
    writer.event({.kind = EventKind::block_alloc,
                  .device = 0,
                  .thread = 1,
                  .address = 0x10000 + i * 256,
                  .size = 256,
                  .stack = stack});
  }
  writer.event({.kind = EventKind::mark, .text = writer.text("here")});
  return writer.bytes();
}

// The number of events that could be read, or nothing where the file was refused.
std::optional<uint64_t> try_reading(const std::filesystem::path& path) {
  try {
    const auto trace = open_trace(path);
    uint64_t events = 0;
    trace->for_each([&](const Event&) { return ++events < 100000; });
    return events;
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.find(path.filename().string()) != std::string::npos);
    return std::nullopt;
  }
}

struct Salvaging {
  Salvaging() { set_damage_policy(Damage::salvage); }
  ~Salvaging() { set_damage_policy(Damage::refuse); }
};

constexpr uint64_t kEvents = 14;

}  // namespace

TEST_CASE("Files that are no traces are refused by what they are") {
  const Scratch scratch;
  const auto refusal = [&](std::string_view name, const std::vector<uint8_t>& bytes) {
    try {
      open_trace(scratch.file(name, bytes));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("(read)");
  };
  CHECK_THAT(refusal("empty", {}), Contains("is empty"));
  CHECK_THAT(refusal("text", {'h', 'e', 'l', 'l', 'o'}), Contains("is not a vramtrack trace"));
  std::vector<uint8_t> other = small_trace();
  other[0] = 'X';
  CHECK_THAT(refusal("other", other), Contains("is not a vramtrack trace"));
  std::vector<uint8_t> newer = small_trace();
  const uint32_t version = 7;
  std::memcpy(newer.data() + 8, &version, sizeof(version));
  CHECK_THAT(refusal("newer", newer), Contains("newer vramtrack") && Contains("format 7"));
  const uint32_t huge = 0xffffffff;
  for (const size_t field : {12, 16, 20, 24}) {  // lengths and counts of the header
    std::vector<uint8_t> bent = small_trace();
    std::memcpy(bent.data() + field, &huge, sizeof(huge));
    CHECK_THAT(refusal("bent", bent), Contains("damaged"));
  }
  CHECK_THROWS_WITH(open_trace(scratch.folder()), Contains("is a directory"));
  CHECK_THROWS_WITH(open_trace(scratch.folder() / "absent"), Contains("cannot open"));
  const auto fifo = scratch.folder() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(open_trace(fifo), Contains("not a regular file"));
}

TEST_CASE("A finished trace that was cut anywhere is refused") {
  const Scratch scratch;
  const std::vector<uint8_t> whole = small_trace();
  REQUIRE(try_reading(scratch.file("whole.vrt", whole)) == kEvents);
  for (size_t length = 0; length + 8 < whole.size(); ++length) {
    const auto cut = scratch.file("cut.vrt", std::span(whole).first(length));
    INFO("cut to " << length << " of " << whole.size());
    CHECK(try_reading(cut) == std::nullopt);
  }
}

TEST_CASE("A killed trace that was cut in its frames loses only what was cut") {
  const Scratch scratch;
  const std::vector<uint8_t> whole = small_trace({.finished = false});
  REQUIRE(try_reading(scratch.file("whole.vrt", whole)) == kEvents);
  uint64_t read = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    const auto cut = scratch.file("cut.vrt", std::span(whole).first(length));
    const auto events = try_reading(cut);
    INFO("cut to " << length << " of " << whole.size());
    if (!events) {
      CHECK(read == 0);  // once readable, it stays readable
      continue;
    }
    CHECK(*events >= read);
    CHECK(*events <= kEvents);
    read = *events;
  }
  CHECK(read == kEvents);
}

TEST_CASE("A flipped bit never crashes, and never adds an event") {
  const Scratch scratch;
  for (const bool finished : {true, false}) {
    for (const Codec codec : {Codec::raw, Codec::zstd}) {
      const std::vector<uint8_t> whole = small_trace({.codec = codec, .finished = finished});
      for (size_t at = 0; at < whole.size(); ++at) {
        std::vector<uint8_t> bent = whole;
        bent[at] = static_cast<uint8_t>(bent[at] ^ (1U << (at * 5 % 8)));
        const auto path = scratch.file("bent.vrt", bent);
        INFO("byte " << at);
        const auto events = try_reading(path);
        // The window has no checksum, so there a flip may split one record into two.
        if (events && finished) CHECK(*events <= kEvents);
        const Salvaging salvaging;
        try_reading(path);
      }
    }
  }
}

TEST_CASE("A bad checksum is refused, and the rest is read on request") {
  const Scratch scratch;
  TraceWriter writer({.slot_bytes = 256});
  for (uint64_t i = 0; i < kEvents; ++i) writer.block(0x10000 + i * 512, 512);
  std::vector<uint8_t> bent = writer.bytes();
  FileHeader header{};
  std::memcpy(&header, bent.data(), sizeof(header));
  bent[header.frames_offset + sizeof(FrameHeader) + sizeof(ChunkHeader) + 3] ^= 0x55;
  const auto path = scratch.file("bent.vrt", bent);
  CHECK_THROWS_WITH(open_trace(path), Contains("damaged") && Contains("--salvage"));
  const Salvaging salvaging;
  const auto trace = open_trace(path);
  CHECK(trace->info().integrity.corrupt_bytes > 0);
  uint64_t events = 0;
  trace->for_each([&](const Event&) { return ++events != 0; });
  CHECK(events > 0);
  CHECK(events < kEvents);
  REQUIRE_FALSE(trace->info().notes.empty());
  CHECK_THAT(trace->info().notes[0], Contains("damaged"));
}

TEST_CASE("A file made to waste our time does not") {
  // Frame headers that each claim a body of most of the file, with a wrong checksum.
  const Scratch scratch;
  std::vector<uint8_t> file = small_trace({.finished = false});
  const uint32_t claimed = 60 * 1024 * 1024;
  for (int i = 0; i < 4000; ++i) {
    const FrameHeader frame{.magic = kFrameMagic,
                            .type = 1,
                            .codec = 0,
                            .stored_bytes = claimed,
                            .raw_bytes = claimed,
                            .checksum = 1,
                            .ring_generation = 0};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&frame);
    file.insert(file.end(), bytes, bytes + sizeof(frame));
  }
  const auto path = scratch.file("slow.vrt", file);
  std::filesystem::resize_file(path, file.size() + claimed);
  CHECK_THROWS_WITH(open_trace(path), Contains("damaged beyond repair"));
}

TEST_CASE("A compressed frame that claims more than it holds is refused") {
  const Scratch scratch;
  std::vector<uint8_t> bomb = small_trace({.codec = Codec::zstd});
  FileHeader header{};
  std::memcpy(&header, bomb.data(), sizeof(header));
  FrameHeader frame{};
  std::memcpy(&frame, bomb.data() + header.frames_offset, sizeof(frame));
  frame.raw_bytes = 64 * 1024 * 1024;
  std::memcpy(bomb.data() + header.frames_offset, &frame, sizeof(frame));
  CHECK_THROWS_WITH(open_trace(scratch.file("bomb.vrt", bomb)), Contains("damaged"));
}

TEST_CASE("A trace that is still being written is read up to where it was") {
  const Scratch scratch;
  TraceWriter first({.finished = false});
  TraceWriter longer({.finished = false});
  for (uint64_t i = 0; i < 5000; ++i) {
    if (i < 2000) first.block(0x100000 + i * 512, 512);
    longer.block(0x100000 + i * 512, 512);
  }
  const auto path = scratch.file("t.vrt", first.bytes());
  const auto trace = open_trace(path);
  const std::vector<uint8_t> grown = longer.bytes();
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .write(reinterpret_cast<const char*>(grown.data()),
             static_cast<std::streamsize>(grown.size()));
  uint64_t events = 0;
  trace->for_each([&](const Event& event) { return event.sequence == ++events; });
  CHECK(events == 2000);
  CHECK(open_trace(path)->info().event_count == 5000);
}
