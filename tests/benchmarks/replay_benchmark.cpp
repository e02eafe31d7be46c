// How fast the analyzer reads and replays: replay_benchmark [EVENTS] (10 million if not given).
//
// The job is shaped like a training run: four threads, segments of 20 MiB, some ten thousand live
// blocks, a kernel for every few allocations, a step now and then.
#include <fmt/core.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <random>

#include "report/build_report.h"
#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/trace_file.h"

namespace vramtrack::test {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kSegments = 1000;
constexpr uint64_t kSlots = 10;  // blocks of 2 MiB in a segment

// Of this process, so that a busy machine does not distort it.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Stopwatch {
 public:
  explicit Stopwatch(const char* what, uint64_t events) : what_(what), events_(events) {}
  ~Stopwatch() {
    const double seconds = processor_seconds() - start_;
    fmt::print("{:<28}{:>8.2f} s{:>9.1f} ns/event\n", what_, seconds,
               seconds * 1e9 / static_cast<double>(events_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const char* what_;
  uint64_t events_;
  double start_ = processor_seconds();
};

void write_job(const std::filesystem::path& path, uint64_t events) {
  TraceWriter w({.codec = Codec::zstd, .slot_bytes = kDefaultSlotBytes});
  std::mt19937_64 dice(1);
  std::vector<uint32_t> stacks;
  for (uint32_t i = 0; i < 2000; ++i) {
    stacks.push_back(w.stack({{"forward", "layer.py", i}, {"main", "train.py", 7}}));
  }
  const uint32_t kernel = w.text("gemm");
  const auto address = [](uint64_t slot) {
    return 0x700000000000 + slot / kSlots * 32 * kMiB + slot % kSlots * 2 * kMiB;
  };
  for (uint64_t i = 0; i < kSegments; ++i) w.alloc(address(i * kSlots), 20 * kMiB);
  std::vector<bool> live(kSegments * kSlots);
  for (uint64_t step = 0; w.sequence() < events; ++step) {
    if (w.sequence() % 10000 < 5) w.event({.kind = EventKind::step, .extra = step});
    const uint64_t slot = dice() % live.size();
    const auto thread = static_cast<uint32_t>(dice() % 4);
    w.event({.kind = live[slot] ? EventKind::block_free : EventKind::block_alloc,
             .device = 0,
             .thread = thread,
             .address = address(slot),
             .size = 2 * kMiB,
             .stack = live[slot] ? 0 : stacks[dice() % stacks.size()]});
    live[slot] = !live[slot];
    if (dice() % 3 == 0) {
      w.event({.kind = EventKind::kernel, .device = 0, .thread = thread, .text = kernel});
    }
  }
  w.save(path);
}

void run(uint64_t events) {
  const Scratch scratch;
  const std::filesystem::path path = scratch.folder() / "job.vrt";
  fmt::print("writing {} events ...\n", events);
  write_job(path, events);
  const uint64_t bytes = std::filesystem::file_size(path);
  fmt::print("{} bytes, {:.1f} per event\n", bytes,
             static_cast<double>(bytes) / static_cast<double>(events));

  std::unique_ptr<TraceFile> trace;
  {
    const Stopwatch watch("open (index, check)", events);
    trace = open_trace(path);
  }
  {
    const Stopwatch watch("one pass, events only", events);
    uint64_t sum = 0;
    trace->for_each([&](const Event& event) { return (sum += event.size) != 1; });
  }
  {
    const Stopwatch watch("survey (replay)", events);
    survey(*trace);
  }
  {
    const Stopwatch watch("whole report", events);
    build_report(*trace, {});
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("most memory {} MiB, the writer's included\n", usage.ru_maxrss / 1024);
}

}  // namespace
}  // namespace vramtrack::test

int main(int argc, char** argv) {
  vramtrack::test::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000);
  return 0;
}
