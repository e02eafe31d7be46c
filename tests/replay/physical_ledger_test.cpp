// Each rule of the physical ledger, with sums worked out by hand.
#include <catch2/catch.hpp>

#include "replay/builder.h"

using namespace vramtrack;
using namespace vramtrack::test;

TEST_CASE("An allocation counts from its call to the end of its free") {
  Builder b;
  b.alloc(0x1000000, 3 * MiB);
  CHECK(b.totals().in_use == 3 * MiB);
  CHECK(b.totals().direct == 3 * MiB);
  CHECK(b.totals().reserved == 0);
  b.free_begin(0x1000000);
  CHECK(b.totals().in_use == 3 * MiB);  // a free may block, and may fail
  b.free_end(0x1000000);
  CHECK(b.totals().in_use == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("A refused free changes nothing") {
  Builder b;
  b.alloc(0x1000000, MiB);
  b.free_begin(0x1000000);
  b.free_end(0x1000000, 0, /*result=*/1);
  CHECK(b.totals().in_use == MiB);
  b.free_begin(0xdead000);  // an invalid pointer, and the driver said so
  b.free_end(0xdead000, 0, 1);
  CHECK(b.anomalies() == 0);
  b.free(0xdead000);  // the driver took back something we never saw
  CHECK(b.state.anomalies().unknown_frees == 1);
}

TEST_CASE("Memory being freed is gone when it is handed out again") {
  Builder b;
  b.alloc(0x1000000, 4 * MiB);
  b.free_begin(0x1000000, /*thread=*/1);
  b.alloc(0x1000000, 2 * MiB);  // another thread got it before the first free returned
  CHECK(b.totals().in_use == 2 * MiB);
  b.free_begin(0x1000000, /*thread=*/2);
  b.free_end(0x1000000, /*thread=*/1);  // of the old one
  CHECK(b.totals().in_use == 2 * MiB);
  b.free_end(0x1000000, /*thread=*/2);
  CHECK(b.totals().in_use == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("Managed, pinned and registered memory are lines of their own") {
  Builder b;
  b.alloc(0x10000000, 1 * MiB, Memory::managed);
  b.alloc(0x20000000, 2 * MiB, Memory::pinned);
  b.alloc(0x30000000, 3 * MiB, Memory::registered);
  CHECK(b.totals().in_use == 0);
  CHECK(b.state.host().managed == 1 * MiB);
  CHECK(b.state.host().pinned == 2 * MiB);
  CHECK(b.state.host().registered == 3 * MiB);
  uint64_t seen = 0;
  b.state.for_each_host([&](const Block& block) { seen += block.size; });
  CHECK(seen == 6 * MiB);
  b.free(0x20000000);
  CHECK(b.state.host().pinned == 0);
  b.state.for_each_live(0, [](const Block&) { FAIL("no device memory is live"); });
}

TEST_CASE("Imports and captured nodes are counted elsewhere") {
  Builder b;
  b.alloc(0x10000000, MiB, Memory::imported);
  b.apply({.kind = EventKind::import_open, .device = 0, .address = 0x40000000, .size = MiB});
  b.apply({.kind = EventKind::physical_alloc,
           .memory = Memory::graph,
           .device = 0,
           .address = 0x50000000,
           .size = MiB,
           .flags = kEventCaptured});
  CHECK(b.totals().in_use == 0);
  b.free(0x10000000);
  b.free(0x50000000);
  b.apply({.kind = EventKind::import_close, .address = 0x40000000});
  CHECK(b.anomalies() == 0);
}

TEST_CASE("A pool holds its reserved bytes, and allocations nest in it") {
  Builder b;
  const auto reserved = [&](uint64_t bytes) {
    b.apply({.kind = EventKind::pool_reserved, .device = 0, .size = bytes, .object = 77});
  };
  const auto alloc = [&](uint64_t address, uint64_t size) {
    b.apply({.kind = EventKind::physical_alloc,
             .memory = Memory::pool,
             .device = 0,
             .address = address,
             .size = size,
             .object = 77});
  };
  b.apply({.kind = EventKind::pool_create, .device = 0, .object = 77});
  alloc(0x1000000, 3 * MiB);
  CHECK(b.totals().in_use == 3 * MiB);  // the driver has not said yet what it reserved
  reserved(32 * MiB);
  CHECK(b.totals().in_use == 32 * MiB);
  CHECK(b.totals().direct == 3 * MiB);
  CHECK(b.totals().cached() == 29 * MiB);
  alloc(0x2000000, 5 * MiB);
  CHECK(b.totals().in_use == 32 * MiB);
  b.free(0x1000000);
  CHECK(b.totals().in_use == 32 * MiB);
  CHECK(b.totals().direct == 5 * MiB);
  reserved(5 * MiB);  // trimmed
  CHECK(b.totals().in_use == 5 * MiB);
  b.apply({.kind = EventKind::pool_destroy, .object = 77});
  CHECK(b.totals().in_use == 0);
  CHECK(b.totals().direct == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("A handle counts until neither a reference nor a mapping is left") {
  Builder b;
  b.apply({.kind = EventKind::address_reserve, .address = 0x1000000, .size = 64 * MiB});
  CHECK(b.totals().in_use == 0);
  b.create(5, 20 * MiB);
  CHECK(b.totals().in_use == 20 * MiB);
  b.map(0x1000000, 20 * MiB, 5);
  b.map(0x4000000, 20 * MiB, 5);  // a second view costs nothing
  CHECK(b.totals().in_use == 20 * MiB);
  b.release(5);
  CHECK(b.totals().in_use == 20 * MiB);  // mapped still
  b.create(5, 2 * MiB);                  // the driver reuses the value: another handle
  CHECK(b.totals().in_use == 22 * MiB);
  b.unmap(0x1000000, 20 * MiB);
  CHECK(b.totals().in_use == 22 * MiB);
  b.unmap(0x4000000, 20 * MiB);
  CHECK(b.totals().in_use == 2 * MiB);
  b.create(5, 2 * MiB);  // retained: a second reference to the same
  b.release(5);
  CHECK(b.totals().in_use == 2 * MiB);
  b.release(5);
  CHECK(b.totals().in_use == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("Mapping a handle of another process adds nothing") {
  Builder b;
  b.map(0x1000000, 20 * MiB, 99);
  CHECK(b.totals().in_use == 0);
  b.unmap(0x1000000, 20 * MiB);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("Contexts and resets take their memory with them") {
  Builder b;
  const auto alloc_in = [&](uint64_t address, uint64_t context) {
    b.apply({.kind = EventKind::physical_alloc,
             .memory = Memory::device,
             .device = 0,
             .address = address,
             .size = MiB,
             .extra = context});
  };
  b.apply({.kind = EventKind::context_create, .device = 0, .object = 1});
  b.apply({.kind = EventKind::context_create, .device = 0, .object = 2});
  alloc_in(0x1000000, 1);
  alloc_in(0x2000000, 2);
  alloc_in(0x3000000, 2);
  b.apply({.kind = EventKind::context_destroy, .device = 0, .object = 2});
  CHECK(b.totals().in_use == MiB);
  b.apply({.kind = EventKind::device_reset, .device = 0});
  CHECK(b.totals().in_use == 0);
  CHECK(b.anomalies() == 0);
}

TEST_CASE("Modules are kept apart from what is in use") {
  Builder b;
  b.apply({.kind = EventKind::module_load, .device = 0, .size = 5 * MiB, .object = 9});
  CHECK(b.totals().modules == 5 * MiB);
  CHECK(b.totals().in_use == 0);
  b.apply({.kind = EventKind::module_unload, .object = 9});
  CHECK(b.totals().modules == 0);
}

TEST_CASE("What a simulated card says of its libraries is told apart from the context") {
  Builder b;
  const auto sample = [&](uint64_t used, uint64_t libraries) {
    b.apply({.kind = EventKind::memory_sample,
             .device = 0,
             .size = 1000 * MiB - used,
             .requested = libraries,
             .extra = 1000 * MiB});
  };
  b.alloc(0x1000000, 10 * MiB);
  sample(334 * MiB, 24 * MiB);  // a context of 300, and a handle that was there before it
  CHECK(b.state.outside(0).context == 300 * MiB);
  CHECK(b.state.outside(0).last.libraries == 24 * MiB);
  sample(374 * MiB, 64 * MiB);
  CHECK(b.state.outside(0).context == 300 * MiB);
  CHECK(b.state.outside(0).last.libraries == 64 * MiB);
  CHECK(b.state.outside(0).residual == 0);
  sample(321 * MiB, 8 * MiB);  // given back, and 3 that nobody explains
  CHECK(b.state.outside(0).last.libraries == 8 * MiB);
  CHECK(b.state.outside(0).residual == static_cast<int64_t>(3 * MiB));
}

TEST_CASE("The residual compares each measurement with the ledger of its own instant") {
  Builder b;
  const auto sample = [&](uint64_t used) {
    b.apply({.kind = EventKind::memory_sample,
             .device = 0,
             .size = 1000 * MiB - used,
             .extra = 1000 * MiB});
  };
  CHECK_FALSE(b.state.outside(0).measured);
  b.alloc(0x1000000, 10 * MiB);
  sample(310 * MiB);  // a context of 300
  CHECK(b.state.outside(0).context == 300 * MiB);
  CHECK(b.state.outside(0).residual == 0);
  b.alloc(0x8000000, 50 * MiB);
  sample(360 * MiB);
  CHECK(b.state.outside(0).residual == 0);
  b.alloc(0x20000000, 5 * MiB);  // not yet measured
  CHECK(b.state.outside(0).residual == 0);
  sample(385 * MiB);  // 20 more than the ledger knows
  CHECK(b.state.outside(0).residual == static_cast<int64_t>(20 * MiB));
  sample(355 * MiB);  // and 10 fewer than when it was first measured
  CHECK(b.state.outside(0).residual == -static_cast<int64_t>(10 * MiB));
  CHECK_FALSE(b.state.outside(0).last.separable);
}
