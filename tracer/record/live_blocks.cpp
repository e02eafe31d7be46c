#include "record/live_blocks.h"

#include <sched.h>

#include <atomic>
#include <bit>

#include "record/pages.h"

namespace vramtrack {
namespace {

constexpr size_t kPlaces = 1 << 17;
constexpr size_t kMostBlocks = kPlaces / 4 * 3;
constexpr size_t kStackPlaces = 1 << 14;
constexpr int kLockAttempts = 100'000;
constexpr uint32_t kOld = 2;  // steps: what was made in the step before may still be in use
constexpr int kFewestSteps = 4;
constexpr uint32_t kManyBlocks = 8;

struct Block {
  uint64_t address;  // 0: free
  uint64_t size;
  uint32_t stack;
  uint32_t step;
};

struct Holding {
  uint32_t stack;  // 0: free
  uint32_t blocks;
  uint64_t bytes;
  uint64_t steps;  // bit n: a block that is n steps older than it had to be
  const Block* newest[2];
};

constinit std::atomic<bool> g_enabled{false};
constinit std::atomic<int> g_lock{0};
constinit std::atomic<bool> g_given_up{false};
constinit Block* g_blocks = nullptr;
constinit size_t g_count = 0;
constinit uint32_t g_step = 0;

class Lock {
 public:
  Lock() : held_(take()) {
    if (!held_) g_given_up.store(true, std::memory_order_relaxed);
  }
  ~Lock() {
    if (held_) g_lock.store(0, std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  static bool take() {
    for (int i = 0; i < kLockAttempts; ++i) {
      if (g_lock.exchange(1, std::memory_order_acquire) == 0) return true;
      if (i > 50) sched_yield();
    }
    return false;
  }
  bool held_;
};

bool in_use() {
  return g_enabled.load(std::memory_order_relaxed) && !g_given_up.load(std::memory_order_relaxed);
}

size_t home_of(uint64_t address) {
  return address * 0x9e3779b97f4a7c15ULL >> 47;  // 17 bits
}
static_assert(kPlaces == size_t{1} << (64 - 47));

// The place of `address`, or the free one where it would stand.
Block& place_of(uint64_t address) {
  size_t at = home_of(address);
  while (g_blocks[at].address != 0 && g_blocks[at].address != address) at = (at + 1) % kPlaces;
  return g_blocks[at];
}

// Moves what stood behind back into the gap, so that no search ends too early.
void erase(Block& block) {
  size_t gap = static_cast<size_t>(&block - g_blocks);
  for (size_t at = (gap + 1) % kPlaces; g_blocks[at].address != 0; at = (at + 1) % kPlaces) {
    const size_t home = home_of(g_blocks[at].address);
    if ((at - home) % kPlaces < (at - gap) % kPlaces) continue;
    g_blocks[gap] = g_blocks[at];
    gap = at;
  }
  g_blocks[gap].address = 0;
  --g_count;
}

// Finds or makes the holding of a stack; nullptr where there are too many.
Holding* holding_of(Holding* holdings, uint32_t stack) {
  size_t at = stack * 0x9e3779b1U >> 18;  // 14 bits
  for (size_t tries = 0; tries < 64; ++tries, at = (at + 1) % kStackPlaces) {
    if (holdings[at].stack == 0) holdings[at].stack = stack;
    if (holdings[at].stack == stack) return &holdings[at];
  }
  return nullptr;
}

void count_block(Holding& holding, const Block& block, uint32_t least_age) {
  const uint32_t age = g_step - block.step - least_age;
  holding.steps |= uint64_t{1} << (age < 63 ? age : 63);
  holding.bytes += block.size;
  ++holding.blocks;
  if (holding.newest[0] == nullptr || block.step > holding.newest[0]->step) {
    holding.newest[1] = holding.newest[0];
    holding.newest[0] = &block;
  } else if (holding.newest[1] == nullptr || block.step > holding.newest[1]->step) {
    holding.newest[1] = &block;
  }
}

bool is_growing(const Holding& holding) {
  return std::popcount(holding.steps) >= kFewestSteps;
}

// The stack that holds most of those that are `wanted` and not yet taken (they have no blocks
// then).
template <class Wanted>
Holding* next_of(Holding* holdings, Wanted wanted) {
  Holding* best = nullptr;
  for (size_t i = 0; i < kStackPlaces; ++i) {
    Holding& holding = holdings[i];
    if (holding.blocks == 0 || !wanted(holding)) continue;
    if (best == nullptr || holding.bytes > best->bytes) best = &holding;
  }
  return best;
}

template <class Wanted>
size_t select(Holding* holdings, OldBlock* blocks, size_t most, unsigned per_stack, Wanted wanted) {
  size_t count = 0;
  while (count < most) {
    Holding* holding = next_of(holdings, wanted);
    if (holding == nullptr) break;
    for (unsigned i = 0; i < per_stack && i < 2 && count < most; ++i) {
      const Block* block = holding->newest[i];
      if (block == nullptr) break;
      blocks[count++] = {block->address,       block->size,    block->stack,
                         g_step - block->step, holding->bytes, holding->blocks};
    }
    holding->blocks = 0;
  }
  return count;
}

// Calls choose(holdings) with what each stack holds in blocks of at least this age.
template <class Choose>
size_t choose_among(uint32_t age, Choose choose) {
  if (!in_use()) return 0;
  constexpr size_t kBytes = kStackPlaces * sizeof(Holding);
  auto* holdings = static_cast<Holding*>(map_pages(kBytes));
  if (holdings == nullptr) return 0;
  size_t count = 0;
  {
    const Lock lock;
    if (lock.held() && g_blocks != nullptr) {
      for (size_t i = 0; i < kPlaces; ++i) {
        const Block& block = g_blocks[i];
        if (block.address == 0 || block.stack == 0 || g_step - block.step < age) continue;
        if (Holding* holding = holding_of(holdings, block.stack)) count_block(*holding, block, age);
      }
      count = choose(holdings);
    }
  }
  unmap_pages(holdings, kBytes);
  return count;
}

}  // namespace

void live_blocks_enable() {
  g_enabled.store(true, std::memory_order_relaxed);
}

void live_block_added(uint64_t address, uint64_t size, uint32_t stack) {
  if (!in_use() || address == 0) return;
  const Lock lock;
  if (!lock.held()) return;
  if (g_blocks == nullptr) g_blocks = static_cast<Block*>(map_pages(kPlaces * sizeof(Block)));
  if (g_blocks == nullptr) return;
  Block& block = place_of(address);
  if (block.address == 0) {
    if (g_count >= kMostBlocks) return;
    ++g_count;
  }
  block = {address, size, stack, g_step};
}

void live_block_removed(uint64_t address) {
  if (!in_use() || address == 0) return;
  const Lock lock;
  if (!lock.held() || g_blocks == nullptr) return;
  Block& block = place_of(address);
  if (block.address != 0) erase(block);
}

void live_blocks_step() {
  if (!in_use()) return;
  const Lock lock;
  if (lock.held()) ++g_step;
}

size_t growing_blocks(OldBlock* blocks, size_t most, unsigned per_stack) {
  return choose_among(kOld, [=](Holding* holdings) {
    return select(holdings, blocks, most, per_stack, is_growing);
  });
}

size_t blocks_of_largest(OldBlock* blocks, size_t most, unsigned per_stack) {
  return choose_among(0, [=](Holding* holdings) -> size_t {
    if (g_step >= kFewestSteps + kOld) return 0;
    uint64_t all = 0;
    for (size_t i = 0; i < kStackPlaces; ++i) all += holdings[i].bytes;
    return select(holdings, blocks, most, per_stack, [all](const Holding& holding) {
      return holding.blocks >= kManyBlocks && holding.bytes >= all / 10;
    });
  });
}

void live_blocks_after_fork_child() {
  // Another thread of the parent may have been in the middle of a change.
  if (g_blocks != nullptr) unmap_pages(g_blocks, kPlaces * sizeof(Block));
  g_blocks = nullptr;
  g_count = 0;
  g_step = 0;
  g_lock.store(0, std::memory_order_relaxed);
  g_given_up.store(false, std::memory_order_relaxed);
}

}  // namespace vramtrack
