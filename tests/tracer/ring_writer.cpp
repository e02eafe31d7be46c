// ring_writer THREADS OPERATIONS PROGRESS: allocates and frees blocks as ring_script.h says,
// through record/ alone. 0 operations: for ever. Progress is kept in a shared file: a number is
// stored there after record() returned.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"
#include "ring_script.h"

namespace {

using namespace ring_script;
using vramtrack::Event;
using vramtrack::EventKind;
using vramtrack::intern_string;

void record(Event event) {
  const vramtrack::Guard guard;
  vramtrack::record(event);
}

uint32_t text(const char* words) {
  const vramtrack::Guard guard;
  return intern_string(words);
}

void segment(uint64_t address, uint64_t bytes) {
  record({.kind = EventKind::physical_alloc,
          .memory = vramtrack::Memory::device,
          .device = 0,
          .address = address,
          .size = bytes});
}

void block(EventKind kind, uint64_t address, uint64_t bytes, uint64_t operation) {
  record({.kind = kind,
          .device = 0,
          .address = address,
          .size = bytes,
          .extra = operation,
          .text = kind == EventKind::block_alloc ? text("Linear") : 0});
}

// Segments come and go: one stays empty, as a cache does, and one is given back.
void prepare() {
  record({.kind = EventKind::device_info,
          .device = 0,
          .size = uint64_t{80} << 30,
          .text = text("card")});
  segment(kEmptySegment, kEmptySegmentBytes);
  block(EventKind::block_alloc, kEmptySegment, 512, 0);
  block(EventKind::block_free, kEmptySegment, 512, 0);
  const uint64_t gone = kEmptySegment + kEmptySegmentBytes;
  segment(gone, kEmptySegmentBytes);
  record({.kind = EventKind::physical_free_begin, .address = gone});
  record({.kind = EventKind::physical_free_end, .address = gone});
}

void work(uint64_t thread, uint64_t operations, std::atomic<uint64_t>* progress) {
  const uint64_t base = base_of(thread);
  segment(base, (kSlots + 1) * kSlotBytes);
  record({.kind = EventKind::phase_push, .text = text("outer")});
  const uint64_t kept = base + kKeptSlot * kSlotBytes;
  block(EventKind::block_alloc, kept, kSlotBytes, 0);
  record({.kind = EventKind::kernel, .text = text("gemm")});
  record({.kind = EventKind::label, .address = kept, .size = kSlotBytes, .text = text("weight")});
  std::array<uint64_t, kSlots> live{};
  for (uint64_t i = 1; operations == 0 || i <= operations; ++i) {
    if (thread == 1 && i % kPerStep == 0) record({.kind = EventKind::step, .extra = i / kPerStep});
    uint64_t& bytes = live[slot_of(thread, i)];
    const uint64_t address = base + slot_of(thread, i) * kSlotBytes;
    block(bytes == 0 ? EventKind::block_alloc : EventKind::block_free, address,
          bytes == 0 ? size_of(i) : bytes, i);
    bytes = bytes == 0 ? size_of(i) : 0;
    progress->store(i, std::memory_order_release);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 97;
  vramtrack::read_config();
  vramtrack::process_initialize();
  const int fd = open(argv[3], O_RDWR);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 99;
  auto* progress = static_cast<std::atomic<uint64_t>*>(memory);
  prepare();
  std::vector<std::thread> workers;
  const uint64_t threads = std::strtoull(argv[1], nullptr, 10);
  const uint64_t operations = std::strtoull(argv[2], nullptr, 10);
  for (uint64_t t = 1; t <= threads; ++t)
    workers.emplace_back([=] { work(t, operations, progress + t); });
  for (std::thread& worker : workers) worker.join();
  return 0;
}
