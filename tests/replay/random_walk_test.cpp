// A long random job against a model so simple that it can be read at a glance: lists of what is
// live, added up from scratch. Also the model of PyTorch's counters, as the witness fields.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "replay/builder.h"

using namespace vramtrack;
using namespace vramtrack::test;

namespace {

struct ModelBlock {
  uint64_t address, size, requested;
};
struct ModelSegment {
  uint64_t address, size;
  std::vector<ModelBlock> blocks;  // by address
};

struct Model {
  std::vector<ModelSegment> segments;
  std::vector<std::pair<uint64_t, uint64_t>> direct;

  [[nodiscard]] uint64_t reserved() const {
    return std::accumulate(segments.begin(), segments.end(), uint64_t{0},
                           [](uint64_t sum, const ModelSegment& s) { return sum + s.size; });
  }
  [[nodiscard]] uint64_t allocated(bool requested) const {
    uint64_t sum = 0;
    for (const ModelSegment& segment : segments) {
      for (const ModelBlock& block : segment.blocks) {
        sum += requested ? block.requested : block.size;
      }
    }
    return sum;
  }
  [[nodiscard]] uint64_t direct_bytes() const {
    uint64_t sum = 0;
    for (const auto& [address, size] : direct) sum += size;
    return sum;
  }
};

class Walk {
 public:
  explicit Walk(unsigned seed) : dice_(seed) {}

  void step() {
    switch (roll(8)) {
      case 0:
        return new_segment();
      case 1:
        return drop_segment();
      case 2:
        return toggle_direct();
      case 3:
      case 4:
        return free_block();
      default:
        return new_block();
    }
  }

  void compare() {
    const DeviceTotals& totals = builder.totals();
    REQUIRE(totals.reserved == model_.reserved());
    REQUIRE(totals.allocated == model_.allocated(false));
    REQUIRE(totals.requested == model_.allocated(true));
    REQUIRE(totals.direct == model_.direct_bytes());
    REQUIRE(totals.in_use == model_.reserved() + model_.direct_bytes());
    REQUIRE(builder.anomalies() == 0);
  }

  Builder builder;

 private:
  uint64_t roll(uint64_t sides) { return dice_() % sides; }

  void new_segment() {
    const ModelSegment segment{next_address_, (1 + roll(10)) * 2 * MiB, {}};
    next_address_ += 64 * MiB;
    builder.alloc(segment.address, segment.size);
    model_.segments.push_back(segment);
    put_block(model_.segments.back(), segment.address);  // an allocator cuts at once
  }
  void drop_segment() {
    for (size_t i = 0; i < model_.segments.size(); ++i) {
      if (!model_.segments[i].blocks.empty()) continue;
      builder.free(model_.segments[i].address);
      model_.segments.erase(model_.segments.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  void toggle_direct() {
    if (!model_.direct.empty() && roll(2) == 0) {
      builder.free(model_.direct.back().first);
      model_.direct.pop_back();
      return;
    }
    model_.direct.emplace_back(next_address_, (1 + roll(30)) * MiB);
    builder.alloc(next_address_, model_.direct.back().second);
    next_address_ += 64 * MiB;
  }
  void put_block(ModelSegment& segment, uint64_t address) {
    uint64_t room = segment.address + segment.size;
    for (const ModelBlock& block : segment.blocks) {
      if (block.address >= address) room = std::min(room, block.address);
    }
    if (room - address < 512) return;
    const uint64_t size = std::min((1 + roll(2000)) * 512, room - address);
    const ModelBlock block{address, size, size - roll(512)};
    segment.blocks.push_back(block);
    builder.apply({.kind = EventKind::block_alloc,
                   .device = 0,
                   .address = block.address,
                   .size = block.size,
                   .requested = block.requested,
                   .witness_allocated = model_.allocated(false),
                   .witness_reserved = model_.reserved()});
  }
  void new_block() {
    if (model_.segments.empty()) return new_segment();
    ModelSegment& segment = model_.segments[roll(model_.segments.size())];
    // Behind a block, if nothing lies there.
    const uint64_t address =
        segment.blocks.empty()
            ? segment.address
            : segment.blocks[roll(segment.blocks.size())].address + segment.blocks.back().size;
    for (const ModelBlock& block : segment.blocks) {
      if (address >= block.address && address < block.address + block.size) return;
    }
    if (address < segment.address + segment.size) put_block(segment, address);
  }
  void free_block() {
    if (model_.segments.empty()) return;
    ModelSegment& segment = model_.segments[roll(model_.segments.size())];
    if (segment.blocks.empty()) return;
    const size_t victim = roll(segment.blocks.size());
    builder.free_block(segment.blocks[victim].address);
    segment.blocks.erase(segment.blocks.begin() + static_cast<std::ptrdiff_t>(victim));
  }

  std::mt19937_64 dice_;
  Model model_;
  uint64_t next_address_ = 0x700000000000;
};

}  // namespace

TEST_CASE("Random jobs add up at every event") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    Walk walk(seed);
    for (int i = 0; i < 3000; ++i) {
      walk.step();
      walk.compare();
    }
    CHECK(walk.builder.state.anomalies().witness_checks > 500);
    uint64_t live = 0;
    walk.builder.state.for_each_live(0, [&](const Block& block) { live += block.size; });
    CHECK(live == walk.builder.totals().live());
  }
}
