// Blocks and the segments they are cut from.
#include <catch2/catch.hpp>
#include <vector>

#include "replay/builder.h"

using namespace vramtrack;
using namespace vramtrack::test;

namespace {

constexpr uint64_t kSegment = 0x10000000;

void expect_balance(const Builder& b) {
  const DeviceTotals& totals = b.totals();
  CHECK(totals.in_use == totals.allocated + totals.direct + totals.cached());
  uint64_t live = 0;
  b.state.for_each_live(0, [&](const Block& block) { live += block.size; });
  CHECK(live == totals.live());
  uint64_t reserved = 0;
  for (const Segment& segment : b.state.segments(0)) reserved += segment.size;
  CHECK(reserved == totals.reserved);
}

}  // namespace

TEST_CASE("An allocation becomes a segment with its first block") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  b.alloc(0x30000000, 7 * MiB);  // another library's
  CHECK(b.totals().direct == 27 * MiB);
  b.block(kSegment, 6 * MiB, 6 * MiB - 100);
  CHECK(b.totals().reserved == 20 * MiB);
  CHECK(b.totals().direct == 7 * MiB);
  CHECK(b.totals().allocated == 6 * MiB);
  CHECK(b.totals().requested == 6 * MiB - 100);
  CHECK(b.totals().cached() == 14 * MiB);
  CHECK(b.totals().in_use == 27 * MiB);
  expect_balance(b);

  b.block(kSegment + 6 * MiB, 2 * MiB);
  const std::vector<Segment> segments = b.state.segments(0);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].allocated == 8 * MiB);
  CHECK(segments[0].free_bytes() == 12 * MiB);
  REQUIRE(segments[0].blocks.size() == 2);
  CHECK(segments[0].blocks[1]->address == kSegment + 6 * MiB);

  b.free_block(kSegment);
  b.free_block(kSegment + 6 * MiB);
  CHECK(b.totals().allocated == 0);
  CHECK(b.totals().cached() == 20 * MiB);  // the segment stays one
  b.free(kSegment);
  CHECK(b.totals().in_use == 7 * MiB);
  CHECK(b.totals().reserved == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("A block that waits for its stream is cached, and can be taken over") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  b.block(kSegment, 4 * MiB);
  b.free_block(kSegment, kEventPendingFree);
  CHECK(b.totals().allocated == 0);
  CHECK(b.totals().pending == 4 * MiB);
  CHECK(b.totals().cached() == 20 * MiB);
  CHECK(b.state.segments(0)[0].pending == 4 * MiB);
  b.apply({.kind = EventKind::block_free_completed, .device = 0, .address = kSegment});
  CHECK(b.totals().pending == 0);

  b.block(kSegment, 4 * MiB);
  b.free_block(kSegment, kEventPendingFree);
  b.block(kSegment, 2 * MiB);  // its completion was never reported
  CHECK(b.totals().pending == 0);
  CHECK(b.totals().allocated == 2 * MiB);
  CHECK(b.anomalies() == 0);
  expect_balance(b);
}

TEST_CASE("Pages of an expandable segment are one run") {
  Builder b;
  b.apply({.kind = EventKind::address_reserve, .address = kSegment, .size = 1024 * MiB});
  for (uint64_t i = 0; i < 3; ++i) {
    b.create(100 + i, 20 * MiB);
    b.map(kSegment + i * 20 * MiB, 20 * MiB, 100 + i);
    b.release(100 + i);
  }
  CHECK(b.totals().direct == 60 * MiB);
  b.block(kSegment, 50 * MiB);  // across three handles
  CHECK(b.totals().reserved == 60 * MiB);
  CHECK(b.totals().direct == 0);
  b.create(7, 20 * MiB);
  b.map(kSegment + 60 * MiB, 20 * MiB, 7);  // grows: belongs to the segment at once
  CHECK(b.totals().reserved == 80 * MiB);
  CHECK(b.totals().direct == 0);
  REQUIRE(b.state.segments(0).size() == 1);
  CHECK(b.state.segments(0)[0].expandable);
  expect_balance(b);

  b.create(8, 20 * MiB);  // beyond a hole, in the same reservation
  b.map(kSegment + 200 * MiB, 20 * MiB, 8);
  CHECK(b.totals().reserved == 100 * MiB);
  CHECK(b.state.segments(0).size() == 2);
  b.unmap(kSegment + 60 * MiB, 20 * MiB);
  CHECK(b.totals().reserved == 80 * MiB);
  b.release(7);
  CHECK(b.totals().in_use == 80 * MiB);
  b.free_block(kSegment);
  for (uint64_t i = 0; i < 3; ++i) b.unmap(kSegment + i * 20 * MiB, 20 * MiB);
  CHECK(b.totals().reserved == 20 * MiB);
  CHECK(b.totals().in_use == 20 * MiB);
  CHECK(b.anomalies() == 0);
  expect_balance(b);
}

TEST_CASE("Segments of a snapshot are counted by themselves") {
  Builder b;
  const auto segment = [&](EventKind kind, uint64_t address, uint64_t size) {
    b.apply({.kind = kind, .device = 0, .stream = 3, .address = address, .size = size});
  };
  segment(EventKind::segment_alloc, kSegment, 20 * MiB);
  CHECK(b.totals().in_use == 20 * MiB);
  CHECK(b.totals().reserved == 20 * MiB);
  segment(EventKind::segment_map, 0x80000000, 40 * MiB);
  segment(EventKind::segment_map, 0x80000000 + 40 * MiB, 20 * MiB);
  CHECK(b.totals().reserved == 80 * MiB);
  CHECK(b.state.segments(0).size() == 2);
  b.block(0x80000000 + 30 * MiB, 20 * MiB);
  segment(EventKind::segment_unmap, 0x80000000, 10 * MiB);  // any piece may go
  CHECK(b.totals().reserved == 70 * MiB);
  CHECK(b.totals().allocated == 20 * MiB);
  segment(EventKind::segment_free, kSegment, 20 * MiB);
  CHECK(b.totals().in_use == 50 * MiB);
  CHECK(b.anomalies() == 0);
  expect_balance(b);
}

TEST_CASE("A block lies in memory of its own device only") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  b.apply({.kind = EventKind::block_alloc, .device = 3, .address = kSegment, .size = 4 * MiB});
  CHECK(b.totals(0).allocated == 0);
  CHECK(b.totals(3).in_use == 4 * MiB);  // which has to lie somewhere
  CHECK(b.totals(3).cached() == 0);
  CHECK(b.state.anomalies().blocks_without_segment == 1);
}

TEST_CASE("Lost events are repaired and counted") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  b.block(kSegment, 4 * MiB);
  b.block(kSegment + 2 * MiB, 4 * MiB);  // the free of the first was lost
  CHECK(b.totals().allocated == 4 * MiB);
  CHECK(b.state.anomalies().overlapping_blocks == 1);
  b.free_block(0x123000);
  CHECK(b.state.anomalies().unknown_frees == 1);
  b.block(0x90000000, MiB);  // in memory we know nothing of
  CHECK(b.state.anomalies().blocks_without_segment == 1);
  CHECK(b.totals().unbacked == MiB);
  CHECK(b.totals().in_use == 21 * MiB);
  b.free(kSegment);  // with a block in it
  CHECK(b.state.anomalies().blocks_lost == 1);
  CHECK(b.totals().in_use == MiB);
  b.free_block(0x90000000);
  CHECK(b.totals().in_use == 0);
}

TEST_CASE("The allocator's own counters are compared with the replay") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  const auto block = [&](uint64_t address, uint64_t allocated, uint64_t reserved) {
    b.apply({.kind = EventKind::block_alloc,
             .device = 0,
             .address = address,
             .size = MiB,
             .witness_allocated = allocated,
             .witness_reserved = reserved});
  };
  block(kSegment, MiB, 20 * MiB);
  CHECK(b.state.anomalies().witness_checks == 1);
  CHECK(b.anomalies() == 0);
  block(kSegment + MiB, 3 * MiB, 20 * MiB);
  CHECK(b.state.anomalies().witness_allocated_wrong == 1);
  block(kSegment + 2 * MiB, 3 * MiB, 22 * MiB);
  CHECK(b.state.anomalies().witness_reserved_wrong == 1);
}

TEST_CASE("CPU tensors are a device of their own") {
  Builder b;
  b.apply({.kind = EventKind::block_alloc, .device = -1, .address = 0x5000, .size = 4096});
  CHECK(b.totals(-1).in_use == 4096);
  CHECK(b.totals(-1).allocated == 4096);
  CHECK(b.state.devices() == std::vector<int16_t>{-1});
  CHECK(b.anomalies() == 0);
}

TEST_CASE("A block knows phase, step, label and the next kernel of its thread") {
  Builder b;
  b.alloc(kSegment, 20 * MiB);
  b.apply({.kind = EventKind::step, .extra = 4});
  b.apply({.kind = EventKind::phase_push, .text = 11});
  b.apply({.kind = EventKind::phase_push, .text = 12});
  b.block(kSegment, MiB);
  b.apply({.kind = EventKind::kernel, .device = 0, .thread = 1, .text = 98});  // another thread's
  b.apply({.kind = EventKind::kernel, .device = 0, .text = 99});
  b.apply({.kind = EventKind::kernel, .device = 0, .text = 97});  // not the next any more
  b.apply({.kind = EventKind::phase_pop});
  b.block(kSegment + MiB, MiB);
  b.apply({.kind = EventKind::block_alloc,
           .device = 0,
           .thread = 5,  // a thread without phases of its own
           .address = kSegment + 2 * MiB,
           .size = MiB});
  b.apply({.kind = EventKind::label, .address = kSegment + 512, .size = 4096, .text = 21});
  b.apply({.kind = EventKind::label, .address = kSegment + 8192, .size = 65536, .text = 22});
  b.apply({.kind = EventKind::label, .address = kSegment + 512, .size = 256, .text = 23});

  const Block* first = b.state.find(kSegment + 100);
  REQUIRE(first != nullptr);
  CHECK(first->step == 4);
  CHECK(first->phase == 12);
  CHECK(first->kernel == 99);
  CHECK(first->label == 22);  // the one that covers most
  CHECK(b.state.find(kSegment + MiB)->phase == 11);
  CHECK(b.state.find(kSegment + 2 * MiB)->phase == 11);
  CHECK(b.state.find(kSegment + 5 * MiB) == nullptr);
  b.free_block(kSegment);
  b.block(kSegment, MiB);
  CHECK(b.state.find(kSegment)->label == 0);  // a label ends with its memory
}

TEST_CASE("Listeners hear of every beginning and every end") {
  struct Listener : BlockListener {
    int begun = 0, freed = 0, segments = 0, lost = 0;
    void block_begun(const Block&) override { ++begun; }
    void block_ended(const Block&, const Event&, End end) override {
      ++(end == End::freed ? freed : end == End::lost ? lost : segments);
    }
  } listener;
  Builder b;
  b.state.set_listener(&listener);
  b.alloc(kSegment, 20 * MiB);
  b.block(kSegment, MiB);
  b.block(kSegment + MiB, MiB);
  b.free_block(kSegment);
  b.free(kSegment);
  CHECK(listener.begun == 3);
  CHECK(listener.segments == 1);
  CHECK(listener.freed == 1);
  CHECK(listener.lost == 1);
}
