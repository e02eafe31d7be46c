// Whatever order the chunks of a trace come in, its events come out in theirs, once each.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/crc32c.h"
#include "trace/input_error.h"
#include "trace/trace_file.h"

using namespace vramtrack;
using namespace vramtrack::test;

namespace {

std::vector<Event> events_of(const Recording& recording) {
  std::vector<Event> events;
  recording.for_each([&](const Event& event) {
    events.push_back(event);
    return true;
  });
  return events;
}

// `count` events, spread over `threads` threads by a fixed dice; address tells the order.
std::vector<uint8_t> scattered(uint32_t threads, uint64_t count, TraceOptions options) {
  TraceWriter writer(std::move(options));
  std::mt19937 dice(7);
  for (uint64_t i = 1; i <= count; ++i) {
    writer.event({.kind = EventKind::block_alloc,
                  .device = 0,
                  .thread = static_cast<uint32_t>(dice()) % threads,
                  .address = i << 9,
                  .size = 512});
  }
  return writer.bytes();
}

void expect_all_in_order(const std::vector<Event>& events, uint64_t count) {
  REQUIRE(events.size() == count);
  for (uint64_t i = 0; i < count; ++i) {
    REQUIRE(events[i].sequence == i + 1);
    REQUIRE(events[i].address == (i + 1) << 9);
  }
}

}  // namespace

TEST_CASE("The checksum is CRC-32C") {
  // The check value of the catalogue of CRC algorithms for "123456789".
  const std::string digits = "123456789";
  const std::vector<uint8_t> bytes(digits.begin(), digits.end());
  CHECK(crc32c(bytes) == 0xe3069283U);
  CHECK(plain_crc32c(bytes) == 0xe3069283U);
  std::vector<uint8_t> longer(1000);
  for (size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<uint8_t>(i * 31);
  CHECK(crc32c(longer) == plain_crc32c(longer));
}

TEST_CASE("Threads are merged by sequence number") {
  const Scratch scratch;
  for (const Codec codec : {Codec::raw, Codec::zstd}) {
    for (const uint32_t threads : {1U, 2U, 13U}) {
      const auto path = scratch.file("t.vrt", scattered(threads, 5000, {.codec = codec}));
      const auto trace = open_trace(path);
      expect_all_in_order(events_of(*trace), 5000);
      CHECK(trace->info().event_count == 5000);
      CHECK(trace->info().integrity.chunks > threads);
      CHECK(trace->info().integrity.corrupt_chunks == 0);
      expect_all_in_order(events_of(*trace), 5000);  // and again: a pass leaves nothing behind
    }
  }
}

TEST_CASE("A visitor may stop early") {
  const Scratch scratch;
  const auto trace = open_trace(scratch.file("t.vrt", scattered(3, 100, {})));
  uint64_t seen = 0;
  trace->for_each([&](const Event&) { return ++seen < 42; });
  CHECK(seen == 42);
}

TEST_CASE("Holes of zeros between frames are skipped") {
  const Scratch scratch;
  const auto path = scratch.file("t.vrt", scattered(4, 2000, {.hole_bytes = 200000}));
  expect_all_in_order(events_of(*open_trace(path)), 2000);
}

TEST_CASE("What a kill leaves in the window is read, what it leaves twice counts once") {
  const Scratch scratch;
  const auto killed = open_trace(scratch.file("k.vrt", scattered(5, 1000, {.finished = false})));
  expect_all_in_order(events_of(*killed), 1000);
  CHECK_FALSE(killed->info().finished);

  const auto twice = open_trace(
      scratch.file("d.vrt", scattered(5, 1000, {.finished = false, .leave_duplicates = true})));
  expect_all_in_order(events_of(*twice), 1000);
  CHECK(twice->info().integrity.duplicate_chunks == 5);
}

TEST_CASE("A frame that was being written when the writer died is cut off and counted") {
  const Scratch scratch;
  std::vector<uint8_t> bytes = scattered(1, 1000, {.finished = false, .leave_duplicates = true});
  // The last frame is the duplicate of what is in the window: half of it is lost, no event is.
  bytes.resize(bytes.size() - 200);
  const auto trace = open_trace(scratch.file("t.vrt", bytes));
  expect_all_in_order(events_of(*trace), 1000);
  CHECK(trace->info().integrity.truncated_bytes > 0);
  CHECK(trace->info().integrity.corrupt_chunks == 0);
}

TEST_CASE(
    "Frames that a kill tore between whole ones lose nothing, their chunks are in the window") {
  for (const Codec codec : {Codec::raw, Codec::zstd}) {
    const Scratch scratch;
    std::vector<uint8_t> bytes =
        scattered(5, 3000, {.codec = codec, .finished = false, .tear_unsealed = true});
    const auto trace = open_trace(scratch.file("t.vrt", bytes));
    expect_all_in_order(events_of(*trace), 3000);
    CHECK(trace->info().integrity.corrupt_bytes == 0);
    // Without these chunks the same bytes are damage.
    FileHeader header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(header.window_offset),
              bytes.begin() + static_cast<std::ptrdiff_t>(header.frames_offset), uint8_t{0});
    CHECK_THROWS_AS(open_trace(scratch.file("f.vrt", bytes)), InputError);
  }
}

TEST_CASE("A frame that was written once more after a full disk tore it loses nothing") {
  for (const bool finished : {false, true}) {
    const Scratch scratch;
    const auto trace = open_trace(scratch.file(
        "t.vrt",
        scattered(3, 3000, {.codec = Codec::zstd, .finished = finished, .tear_again = true})));
    expect_all_in_order(events_of(*trace), 3000);
    CHECK(trace->info().integrity.corrupt_bytes == 0);
  }
}

TEST_CASE("Every field of an event survives") {
  Event event{.kind = EventKind::block_alloc,
              .memory = Memory::device,
              .device = 3,
              .thread = 2,
              .sequence = 17,
              .time_ns = 123456789,
              .stream = 0xdeadbeef,
              .address = 0x7f1234567000,
              .size = uint64_t{1} << 40,
              .requested = 12345,
              .object = ~uint64_t{0},
              .extra = 77,
              .witness_allocated = uint64_t{1} << 35,
              .witness_reserved = uint64_t{1} << 36,
              .stack = 9,
              .text = 8,
              .api = 7,
              .result = -5,
              .flags = kEventSmallPool | kEventPendingFree};
  TraceWriter writer;
  writer.event(event);
  event.sequence = 18;
  event.address -= 4096;
  event.time_ns -= 10;  // clocks of two threads may cross
  event.witness_allocated = 0;
  writer.event(event);
  const Scratch scratch;
  const auto events = events_of(*open_trace(scratch.file("t.vrt", writer.bytes())));
  REQUIRE(events.size() == 2);
  const Event& read = events[1];
  CHECK(read.kind == event.kind);
  CHECK(read.memory == event.memory);
  CHECK(read.device == 3);
  CHECK(read.thread == 2);
  CHECK(read.sequence == 18);
  CHECK(read.time_ns == 123456779);
  CHECK(read.stream == event.stream);
  CHECK(read.address == 0x7f1234566000);
  CHECK(read.size == event.size);
  CHECK(read.requested == event.requested);
  CHECK(read.object == event.object);
  CHECK(read.extra == event.extra);
  CHECK(read.witness_allocated == 0);
  CHECK(read.witness_reserved == event.witness_reserved);
  CHECK(read.stack == 9);
  CHECK(read.text == 8);
  CHECK(read.api == 7);
  CHECK(read.result == -5);
  CHECK(read.flags == event.flags);
}

TEST_CASE("Definitions may come after their use and in another chunk") {
  TraceWriter writer({.slot_bytes = 512});
  writer.event({.kind = EventKind::mark, .thread = 1, .text = 1});
  const uint32_t mark = writer.text("warm");
  REQUIRE(mark == 1);
  const uint32_t stack = writer.stack({{"forward", "model.py", 42}, {"main", "train.py", 7}});
  const uint32_t native = writer.native_stack({0x7f0000001000, 0x7f0000000500, 0x400123});
  writer.metadata("simulated", "true");
  writer.metadata("PYTORCH_ALLOC_CONF", "expandable_segments:True");
  writer.thread_name(1, "pt_autograd_0");
  writer.event({.kind = EventKind::device_info,
                .device = 1,
                .size = uint64_t{80} << 30,
                .text = writer.text("H100")});
  const Scratch scratch;
  const auto trace = open_trace(scratch.file("t.vrt", writer.bytes()));
  const Definitions& definitions = trace->definitions();
  CHECK(definitions.string(mark) == "warm");
  CHECK(definitions.thread_name(1) == "pt_autograd_0");
  CHECK(definitions.stack(stack).size() == 2);
  CHECK(definitions.stack(native).size() == 3);
  const RawDefinitions& raw = trace->raw_definitions();
  REQUIRE(raw.stacks.size() == 2);
  CHECK(raw.stacks[0].frames[0].python);
  CHECK(raw.codes.at(static_cast<uint32_t>(raw.stacks[0].frames[0].value)).name == "forward");
  CHECK(raw.codes.at(static_cast<uint32_t>(raw.stacks[0].frames[1].value)).first_line == 7);
  CHECK(raw.stacks[1].frames[0].value == 0x7f0000001000);
  CHECK(raw.stacks[1].frames[1].value == 0x7f0000000500);
  CHECK(raw.stacks[1].frames[2].value == 0x400123);
  const RecordingInfo& info = trace->info();
  CHECK(info.simulated);
  CHECK(info.allocator_settings == "expandable_segments:True");
  CHECK(info.command == std::vector<std::string>{"python", "train.py"});
  CHECK(info.host == "node7");
  CHECK(info.pid == 4242);
  REQUIRE(info.devices.size() == 1);
  CHECK(info.devices[0].ordinal == 1);
  CHECK(info.devices[0].name == "H100");
  CHECK(info.devices[0].total_bytes == uint64_t{80} << 30);
}

TEST_CASE("The writer's count of lost events is kept") {
  TraceWriter writer({.dropped_events = 31});
  writer.alloc(0x1000, 4096);
  const Scratch scratch;
  CHECK(open_trace(scratch.file("t.vrt", writer.bytes()))->info().dropped_events == 31);
}
