#include "replay/state.h"

#include <algorithm>

#include "replay/block_ledger.h"
#include "replay/measurements.h"
#include "replay/physical_ledger.h"
#include "replay/program_context.h"
#include "replay/totals.h"

namespace vramtrack {
namespace {

bool is_physical(EventKind kind) {
  return (kind >= EventKind::physical_alloc && kind <= EventKind::physical_failed) ||
         (kind >= EventKind::segment_alloc && kind <= EventKind::segment_unmap);
}

}  // namespace

// The ledgers refer to each other, so they stay where they are and MemoryState points at them.
struct MemoryState::Parts final : PhysicalObserver {
  Totals totals;
  Anomalies anomalies;
  PhysicalLedger physical{totals, anomalies, *this};
  BlockLedger blocks{totals, anomalies, physical};
  ProgramContext program;
  Measurements measurements;
  Event last;

  void apply(const Event& any_event);
  [[nodiscard]] Block maker_of(const Event& event) const;
  void label(const Event& event);
  void label_block(Block& block, const Event& event);
  void kernel(const Event& event);
  void await_kernel(const Block& block);

  void direct_begun(Block& block) override {
    await_kernel(block);
    if (blocks.listener != nullptr) blocks.listener->block_begun(block);
  }
  void direct_ended(const Block& block, BlockListener::End end) override {
    if (blocks.listener != nullptr) blocks.listener->block_ended(block, last, end);
  }
  void memory_gone(uint64_t address, uint64_t size) override { blocks.end_in(address, size, last); }
};

// What every new block or allocation gets from the event and from what the program was doing.
Block MemoryState::Parts::maker_of(const Event& event) const {
  Block made;
  made.address = event.address;
  made.size = event.size;
  made.requested = event.requested;
  made.stands_for = (event.flags & kEventSampled) != 0 ? event.extra : 0;
  made.stream = event.stream;
  made.sequence = event.sequence;
  made.time_ns = event.time_ns;
  made.step = program.step();
  made.stack = event.stack;
  made.phase = program.phase(event.thread);
  // An imported event's text is whatever its program attached to it.
  if (event.kind == EventKind::block_alloc && (event.flags & kEventForeignText) == 0)
    made.module = event.text;
  made.api = event.api;
  made.thread = event.thread;
  made.flags = event.flags;
  made.device = event.device;
  made.memory = event.memory;
  return made;
}

void MemoryState::Parts::apply(const Event& any_event) {
  last = any_event;
  last.device = known_device(any_event.device);
  const Event& event = last;
  switch (event.kind) {
    case EventKind::block_alloc: {
      if (event.size == 0) return;
      const Block& block = blocks.allocate(event, maker_of(event));
      await_kernel(block);
      return;
    }
    case EventKind::block_free:
      return blocks.free(event);
    case EventKind::block_free_completed:
      return blocks.complete_free(event);
    case EventKind::memory_sample:
      return measurements.sample(event, totals.of(event.device));
    case EventKind::process_sample:
      return measurements.process_sample(event);
    case EventKind::device_info:
      totals.of(event.device);  // a device nobody used is a device all the same
      return;
    case EventKind::phase_push:
      return program.push_phase(event.thread, event.text);
    case EventKind::phase_pop:
      return program.pop_phase(event.thread);
    case EventKind::step:
      return program.begin_step(event.extra);
    case EventKind::annotation_begin:
      return program.begin_annotation(event.text);
    case EventKind::annotation_end:
      return program.end_annotation(event.text);
    case EventKind::label:
      return label(event);
    case EventKind::kernel:
      return kernel(event);
    case EventKind::kernel_access:
      if ((event.flags & kEventGraphNode) == 0) kernel(event);
      return;
    case EventKind::ring_segment:
      physical.claim(maker_of(event));
      return;
    default:
      if (is_physical(event.kind)) physical.apply(event, maker_of(event));
      return;
  }
}

void MemoryState::Parts::kernel(const Event& event) {
  if ((event.flags & kEventCarried) != 0) {  // of one block
    Block* block = blocks.at(event.address);
    if (block == nullptr) block = physical.find_direct(event.address);
    if (block != nullptr) block->kernel = event.text;
    return;
  }
  program.kernel(event.thread, [&](uint64_t address, uint64_t sequence) {
    Block* block = blocks.at(address);
    if (block == nullptr || block->sequence != sequence) block = physical.find_direct(address);
    if (block != nullptr && block->sequence == sequence) block->kernel = event.text;
  });
}

// What a ring carried over has its kernel with it, unless none had come by then.
void MemoryState::Parts::await_kernel(const Block& block) {
  if ((block.flags & kEventCarried) != 0 && (block.flags & kEventKernelDue) == 0) return;
  program.await_kernel(block.thread, block);
}

// A label names a tensor, which may be part of a block, or a range of the program's own that holds
// several blocks.
void MemoryState::Parts::label(const Event& event) {
  if (Block* block = blocks.holding(event.address)) return label_block(*block, event);
  if (Block* direct = physical.find_direct(event.address)) return label_block(*direct, event);
  blocks.for_each_in(event.address, event.address + event.size,
                     [&](Block& block) { label_block(block, event); });
}

void MemoryState::Parts::label_block(Block& block, const Event& event) {
  const uint64_t covered =
      std::min(block.end(), event.address + event.size) - std::max(block.address, event.address);
  if (covered < block.label_bytes) return;  // a larger part of it has a name already
  block.label_bytes = covered;
  block.label = event.text;
}

MemoryState::MemoryState() : parts_(std::make_unique<Parts>()) {
}
MemoryState::~MemoryState() = default;
MemoryState::MemoryState(MemoryState&&) noexcept = default;
MemoryState& MemoryState::operator=(MemoryState&&) noexcept = default;

void MemoryState::apply(const Event& event) {
  parts_->apply(event);
}
void MemoryState::set_listener(BlockListener* listener) {
  parts_->blocks.listener = listener;
}

uint64_t MemoryState::sequence() const {
  return parts_->last.sequence;
}
uint64_t MemoryState::time_ns() const {
  return parts_->last.time_ns;
}
uint64_t MemoryState::step() const {
  return parts_->program.step();
}
StringId MemoryState::phase() const {
  return parts_->program.phase(parts_->last.thread);
}

std::vector<int16_t> MemoryState::devices() const {
  return parts_->totals.seen();
}
const DeviceTotals& MemoryState::totals(int16_t device) const {
  return parts_->totals.find(device);
}
const HostTotals& MemoryState::host() const {
  return parts_->totals.host;
}
Outside MemoryState::outside(int16_t device) const {
  return parts_->measurements.outside(device);
}
const Anomalies& MemoryState::anomalies() const {
  return parts_->anomalies;
}

void MemoryState::for_each_live(int16_t device,
                                const std::function<void(const Block&)>& visit) const {
  std::vector<const Block*> live;
  parts_->blocks.for_each([&](const Block& block) {
    if (block.device == device && !block.pending) live.push_back(&block);
  });
  const size_t first_direct = live.size();
  parts_->physical.for_each_direct(device, [&](const Block& block) { live.push_back(&block); });
  const auto by_address = [](const Block* a, const Block* b) { return a->address < b->address; };
  std::sort(live.begin() + static_cast<std::ptrdiff_t>(first_direct), live.end(), by_address);
  std::inplace_merge(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(first_direct),
                     live.end(), by_address);
  for (const Block* block : live) visit(*block);
}

void MemoryState::for_each_host(const std::function<void(const Block&)>& visit) const {
  parts_->physical.for_each_host(visit);
}

std::vector<Segment> MemoryState::segments(int16_t device) const {
  std::vector<Segment> segments;
  parts_->physical.append_segments(device, segments);
  parts_->blocks.fill(device, segments);
  return segments;
}

const Block* MemoryState::find(uint64_t address) const {
  const Block* block = parts_->blocks.holding(address);
  if (block != nullptr && !block->pending) return block;
  return parts_->physical.find_direct(address);
}

}  // namespace vramtrack
