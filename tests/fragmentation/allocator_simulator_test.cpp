// The simulated allocator against values worked out by hand from the documented rules.
#include "replay/allocator_simulator.h"

#include <catch2/catch.hpp>

namespace vramtrack {
namespace {

constexpr AllocatorSimulator::Limits kGigabyteCard{.device_bytes = kGiB};

AllocatorSimulator with(std::string_view settings, AllocatorSimulator::Limits limits = {}) {
  return AllocatorSimulator(AllocatorSettings::parse(settings), limits);
}

}  // namespace

TEST_CASE("segments have the sizes of their pools") {
  auto allocator = with("");
  const SimulatedBlock* tiny = allocator.allocate(1000, 0, 0);
  REQUIRE(tiny->size == 1024);
  REQUIRE(allocator.reserved() == 2 * kMiB);
  allocator.allocate(3 * kMiB / 2, 0, 0);
  REQUIRE(allocator.reserved() == 22 * kMiB);
  // 10.5 MiB fit into the rest of the 20 MiB segment, 11 MiB more do not: a segment of 12 MiB
  // whose last MiB is too little to be cut off.
  allocator.allocate(21 * kMiB / 2, 0, 0);
  REQUIRE(allocator.reserved() == 22 * kMiB);
  const SimulatedBlock* unsplit = allocator.allocate(11 * kMiB, 0, 0);
  REQUIRE(allocator.reserved() == 34 * kMiB);
  REQUIRE(unsplit->size == 12 * kMiB);
}

TEST_CASE("the best fit wins, and streams and pools share nothing") {
  auto allocator = with("");
  SimulatedBlock* large = allocator.allocate(100 * kMiB, 0, 0);
  SimulatedBlock* medium = allocator.allocate(60 * kMiB, 0, 0);
  const uint64_t place = medium->address;
  allocator.free_completed(large);
  allocator.free_completed(medium);
  REQUIRE(allocator.allocate(50 * kMiB, 0, 0)->address == place);
  REQUIRE(allocator.reserved() == 160 * kMiB);
  allocator.allocate(50 * kMiB, 1, 0);  // another stream
  REQUIRE(allocator.reserved() == 210 * kMiB);
  allocator.allocate(50 * kMiB, 0, 7);  // a private pool
  REQUIRE(allocator.reserved() == 260 * kMiB);
}

TEST_CASE("freed neighbours become one block") {
  auto allocator = with("");
  SimulatedBlock* a = allocator.allocate(4 * kMiB, 0, 0);
  SimulatedBlock* b = allocator.allocate(4 * kMiB, 0, 0);
  SimulatedBlock* c = allocator.allocate(4 * kMiB, 0, 0);
  const uint64_t start = a->address;
  allocator.free_completed(a);
  allocator.free_completed(c);  // merges with the 8 MiB behind it
  allocator.free_completed(b);  // merges with both sides
  REQUIRE(allocator.allocate(20 * kMiB, 0, 0)->address == start);
  REQUIRE(allocator.reserved() == 20 * kMiB);
}

TEST_CASE("a block whose streams are not done is not used again") {
  auto allocator = with("");
  SimulatedBlock* a = allocator.allocate(20 * kMiB, 0, 0);
  const uint64_t place = a->address;
  allocator.free_requested(a);
  REQUIRE(allocator.allocated() == 0);
  REQUIRE(allocator.allocate(20 * kMiB, 0, 0)->address != place);
  allocator.free_completed(a);
  REQUIRE(allocator.allocate(20 * kMiB, 0, 0)->address == place);
}

TEST_CASE("emptying the cache returns whole segments only") {
  auto allocator = with("");
  SimulatedBlock* whole = allocator.allocate(40 * kMiB, 0, 0);
  SimulatedBlock* part = allocator.allocate(4 * kMiB, 0, 0);
  SimulatedBlock* pin = allocator.allocate(4 * kMiB, 0, 0);
  allocator.free_completed(whole);
  allocator.free_completed(part);
  allocator.release_cached();
  REQUIRE(allocator.reserved() == 20 * kMiB);
  allocator.free_completed(pin);
  allocator.release_cached();
  REQUIRE(allocator.reserved() == 0);
}

TEST_CASE("before it gives up it gives its cache back") {
  auto allocator = with("", kGigabyteCard);
  SimulatedBlock* first = allocator.allocate(600 * kMiB, 0, 0);
  allocator.free_completed(first);
  REQUIRE(allocator.allocate(800 * kMiB, 0, 0) != nullptr);
  REQUIRE(allocator.retries() == 1);
  REQUIRE(allocator.reserved() == 800 * kMiB);
  REQUIRE(allocator.allocate(300 * kMiB, 0, 0) == nullptr);
}

TEST_CASE("an expandable segment maps the pages it needs and grows in place") {
  auto allocator = with("expandable_segments:True");
  const SimulatedBlock* a = allocator.allocate(30 * kMiB, 0, 0);
  REQUIRE(allocator.reserved() == 40 * kMiB);
  SimulatedBlock* b = allocator.allocate(30 * kMiB, 0, 0);  // 10 free, 20 more
  REQUIRE(b->address == a->address + 30 * kMiB);
  REQUIRE(allocator.reserved() == 60 * kMiB);
  allocator.free_completed(b);
  // A request of another size reuses the hole and grows it: no new segment, no waste.
  const SimulatedBlock* c = allocator.allocate(50 * kMiB, 0, 0);
  REQUIRE(c->address == a->address + 30 * kMiB);
  REQUIRE(allocator.reserved() == 80 * kMiB);
}

TEST_CASE("an expandable segment returns whole pages from its middle") {
  auto allocator = with("expandable_segments:True");
  SimulatedBlock* a = allocator.allocate(30 * kMiB, 0, 0);
  SimulatedBlock* b = allocator.allocate(60 * kMiB, 0, 0);
  allocator.allocate(10 * kMiB, 0, 0);
  REQUIRE(allocator.reserved() == 100 * kMiB);
  allocator.free_completed(b);  // 30..90 MiB: whole pages are 40..80
  allocator.release_cached();
  REQUIRE(allocator.reserved() == 60 * kMiB);
  allocator.free_completed(a);
  allocator.release_cached();  // 0..40 MiB go, 80..90 shares its page with a live block
  REQUIRE(allocator.reserved() == 20 * kMiB);
  REQUIRE(allocator.allocate(60 * kMiB, 0, 0) != nullptr);
}

TEST_CASE("the same requests fragment plain segments and not expandable ones") {
  // A tensor that grows by 10 MiB in each round, the old one freed after the new one was made.
  const auto peak = [](std::string_view settings) {
    auto allocator = with(settings);
    SimulatedBlock* current = allocator.allocate(100 * kMiB, 0, 0);
    for (uint64_t size = 110; size <= 200; size += 10) {
      SimulatedBlock* next = allocator.allocate(size * kMiB, 0, 0);
      allocator.free_completed(current);
      current = next;
    }
    return allocator.reserved_peak();
  };
  // Plain: each size is larger than all that are free, so that every one gets a segment of its own.
  REQUIRE(peak("") == (100 + 110 + 120 + 130 + 140 + 150 + 160 + 170 + 180 + 190 + 200) * kMiB);
  REQUIRE(peak("expandable_segments:True") < 800 * kMiB);
}

TEST_CASE("blocks above max_split_size are neither split nor given to small requests") {
  auto allocator = with("max_split_size_mb:128");
  SimulatedBlock* large = allocator.allocate(200 * kMiB, 0, 0);
  allocator.free_completed(large);
  allocator.allocate(100 * kMiB, 0, 0);
  REQUIRE(allocator.reserved() == 300 * kMiB);
  // Up to 20 MiB more than needed are accepted unsplit, beyond that a new segment is made.
  REQUIRE(allocator.allocate(190 * kMiB, 0, 0)->size == 200 * kMiB);
  REQUIRE(allocator.reserved() == 300 * kMiB);
}

TEST_CASE("garbage collection keeps reserved memory below its threshold") {
  auto allocator = AllocatorSimulator(AllocatorSettings::parse("garbage_collection_threshold:0.5"),
                                      {.fraction_bytes = kGiB});
  SimulatedBlock* old = allocator.allocate(300 * kMiB, 0, 0);
  SimulatedBlock* young = allocator.allocate(310 * kMiB, 0, 0);
  allocator.free_completed(old);
  for (int i = 0; i < 10; ++i) allocator.free_completed(allocator.allocate(1000, 0, 0));
  allocator.free_completed(young);
  // 612 MiB are above half of a GiB: the block that has lain longest goes, the young one stays.
  allocator.allocate(320 * kMiB, 0, 0);
  REQUIRE(allocator.reserved() == (310 + 320 + 2) * kMiB);
}

TEST_CASE("what was there before is laid out as it was") {
  auto allocator = with("");
  allocator.add_segment(kGiB, 20 * kMiB, 0, 0, false, false);
  SimulatedBlock* middle = allocator.add_block(kGiB + 4 * kMiB, 8 * kMiB, 8 * kMiB);
  REQUIRE(middle != nullptr);
  REQUIRE(allocator.add_block(kGiB + 6 * kMiB, 4 * kMiB, 1) == nullptr);  // taken
  REQUIRE(allocator.allocate(4 * kMiB, 0, 0)->address == kGiB);
  REQUIRE(allocator.allocate(8 * kMiB, 0, 0)->address == kGiB + 12 * kMiB);
  REQUIRE(allocator.reserved() == 20 * kMiB);
}

}  // namespace vramtrack
