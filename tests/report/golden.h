// A small training job whose every number is known: what the report's tests and the tests of the
// commands look at.
#ifndef VRAMTRACK_TESTS_REPORT_GOLDEN_H
#define VRAMTRACK_TESTS_REPORT_GOLDEN_H

#include "support/trace_writer.h"

namespace vramtrack::test {

inline constexpr uint64_t kMiB = 1024 * 1024;

// On device 0, in MiB. Segments: 200 + 100 + 50. Blocks: weights 80 (labelled parameters), KV 30
// (phase kv_cache), batch 20 (labelled inputs, 1 of it rounding), unknown 40, one of 10 that waits
// for its stream. NCCL-like memory of another library: 25. Context: 500. Peak of allocated memory:
// 170 at the mark "top", step 2. Afterwards 60 more are reserved and never used.
//   in use at "top": 350 + 25 = 375; allocated 170; cached 180 = 10 pending + 50 releasable + 120
inline std::vector<uint8_t> golden_trace(TraceOptions options = {}, bool out_of_memory = false) {
  TraceWriter w(std::move(options));
  const uint32_t weights = w.stack({{"zeros", "/env/site-packages/torch/nn/init.py", 12},
                                    {"build", "/home/me/model.py", 30},
                                    {"main", "/home/me/train.py", 7}});
  const uint32_t forward = w.stack({{"matmul", "/env/site-packages/torch/functional.py", 99},
                                    {"Attention.forward", "/home/me/model.py", 42},
                                    {"GPT.forward", "/home/me/model.py", 60},
                                    {"main", "/home/me/train.py", 21}});
  const uint32_t forward_again = w.stack({{"Attention.forward", "/home/me/model.py", 42},
                                          {"GPT.forward", "/home/me/model.py", 61},
                                          {"main", "/home/me/train.py", 21}});
  w.event({.kind = EventKind::device_info,
           .device = 0,
           .size = 1000 * kMiB,
           .text = w.text("Test Card 1000")});
  w.event(
      {.kind = EventKind::memory_sample, .device = 0, .size = 500 * kMiB, .extra = 1000 * kMiB});
  constexpr uint64_t kFirst = 0x10000000, kSecond = 0x30000000, kThird = 0x50000000;
  const auto block = [&](uint64_t address, uint64_t size, uint32_t stack, uint64_t requested = 0) {
    w.event({.kind = EventKind::block_alloc,
             .device = 0,
             .address = address,
             .size = size,
             .requested = requested,
             .stack = stack});
  };
  w.event({.kind = EventKind::step, .extra = 1});
  w.alloc(kFirst, 200 * kMiB);
  block(kFirst, 80 * kMiB, weights);
  w.event({.kind = EventKind::label,
           .address = kFirst,
           .size = 80 * kMiB,
           .text = w.text("parameters:wte.weight")});
  w.alloc(0x70000000, 25 * kMiB);
  w.event({.kind = EventKind::step, .extra = 2});
  w.event({.kind = EventKind::phase_push, .text = w.text("forward")});
  w.event({.kind = EventKind::phase_push, .text = w.text("kv_cache")});
  block(kFirst + 80 * kMiB, 30 * kMiB, forward);
  w.event({.kind = EventKind::phase_pop});
  w.alloc(kSecond, 100 * kMiB);
  block(kSecond, 20 * kMiB, forward_again, 19 * kMiB);
  w.event(
      {.kind = EventKind::label, .address = kSecond, .size = 19 * kMiB, .text = w.text("inputs")});
  block(kSecond + 50 * kMiB, 10 * kMiB, 0);
  w.event({.kind = EventKind::block_free,
           .device = 0,
           .address = kSecond + 50 * kMiB,
           .size = 10 * kMiB,
           .flags = kEventPendingFree});
  w.alloc(kThird, 50 * kMiB);
  block(kThird, 2 * kMiB, 0);
  w.free_block(kThird, 2 * kMiB);
  block(kFirst + 120 * kMiB, 40 * kMiB, 0);
  w.event({.kind = EventKind::memory_sample,
           .device = 0,
           .size = (1000 - 500 - 375 - 3) * kMiB,
           .extra = 1000 * kMiB});
  w.event({.kind = EventKind::mark, .text = w.text("top")});
  if (out_of_memory) {
    w.event({.kind = EventKind::out_of_memory,
             .device = 0,
             .size = 700 * kMiB,
             .requested = 700 * kMiB,
             .stack = forward});
  }
  w.event({.kind = EventKind::phase_pop});
  w.free_block(kFirst + 120 * kMiB, 40 * kMiB);
  w.alloc(0x90000000, 60 * kMiB);
  block(0x90000000, kMiB, 0);
  w.free_block(0x90000000, kMiB);
  return w.bytes();
}

}  // namespace vramtrack::test

#endif  // VRAMTRACK_TESTS_REPORT_GOLDEN_H
