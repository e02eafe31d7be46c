// record_benchmark [THREADS [EVENTS]]: what an event costs, from a filled Event to bytes in the
// file, without a stack. Prints nanoseconds per event and thread, over all and for each tenth of
// the events: what a long job pays must not grow. With VRAMTRACK_RING what a ring pays. Never a
// test: timings decide nothing.
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"

namespace {

using vramtrack::Event;
using vramtrack::EventKind;

uint64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Blocks come and go as in a training step: sizes repeat, addresses move by multiples of 512. One
// in 4096 stays, so that a ring has more and more to carry over.
void allocate_and_free(uint64_t seed, uint64_t events, std::vector<uint64_t>& tenths) {
  const vramtrack::Guard guard;
  uint64_t begin = thread_ns();
  for (uint64_t i = 0; i < events; i += 2) {
    if (i / 2 % (events / 20) == 0 && i != 0) {
      const uint64_t now = thread_ns();
      tenths.push_back(now - begin);
      begin = now;
    }
    const uint64_t address = 0x7f0000000000 + ((seed + i * 2654435761) % 100'000) * 512;
    Event event{.kind = EventKind::block_alloc,
                .device = 0,
                .address = address,
                .size = uint64_t{512} << (i % 12),
                .requested = (uint64_t{512} << (i % 12)) - 8,
                .witness_allocated = i * 512,
                .witness_reserved = 1 << 30};
    event.stack = static_cast<uint32_t>(i % 300);
    if (i % 8192 == 0) event.address = 0x7e0000000000 + i * 512;
    vramtrack::record(event);
    if (i % 8192 == 0) continue;
    event.kind = EventKind::block_free;
    event.requested = 0;
    vramtrack::record(event);
  }
  tenths.push_back(thread_ns() - begin);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t events = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2'000'000;
  vramtrack::read_config();
  vramtrack::process_initialize();
  std::vector<std::vector<uint64_t>> spent(threads);
  std::vector<std::thread> workers;
  for (uint64_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] { allocate_and_free(t * 1000, events, spent[t]); });
  for (std::thread& worker : workers) worker.join();
  double total = 0;
  for (const auto& tenths : spent)
    for (const uint64_t ns : tenths) total += static_cast<double>(ns);
  std::printf("%llu thread(s), %llu events each: %.0f ns of CPU time per event\n",
              static_cast<unsigned long long>(threads), static_cast<unsigned long long>(events),
              total / static_cast<double>(threads * events));
  std::printf("of the first thread, each tenth of the events:");
  for (const uint64_t ns : spent[0])
    std::printf(" %.0f", static_cast<double>(ns) / (static_cast<double>(events) / 10));
  std::printf("\n");
  return 0;
}
