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
  [[nodiscard]] double elapsed() const { return processor_seconds() - start_; }
  ~Stopwatch() {
    const double seconds = elapsed();
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
  // Of the shapes that training has, so that attribution has something to read.
  const std::vector<std::vector<PythonLine>> shapes = {
      {{"Linear.forward", "/torch/nn/modules/linear.py", 134},
       {"Attention.forward", "model.py", 0}},
      {{"softmax", "/torch/nn/functional.py", 2100}, {"Attention.forward", "model.py", 0}},
      {{"Linear.forward", "/torch/nn/modules/linear.py", 134}, {"MLP.forward", "model.py", 0}},
      {{"apply_rotary_pos_emb", "model.py", 0}, {"Attention.forward", "model.py", 40}},
      {{"cross_entropy", "/torch/nn/functional.py", 3400}, {"train_step", "train.py", 0}},
      {{"_multi_tensor_adamw", "/torch/optim/adamw.py", 0}, {"step", "/torch/optim/adamw.py", 230}},
      {{"backward", "/torch/_tensor.py", 600}, {"train_step", "train.py", 0}},
      {{"collate", "/torch/utils/data/_utils/collate.py", 0}, {"batches", "train.py", 50}}};
  for (uint32_t i = 0; i < 2000; ++i) {
    std::vector<PythonLine> lines = shapes[i % shapes.size()];
    for (PythonLine& line : lines)
      if (line.line == 0) line.line = i + 1;
    lines.push_back({"main", "train.py", 7});
    stacks.push_back(w.stack(lines));
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
    const size_t stack = dice() % stacks.size();
    w.event({.kind = live[slot] ? EventKind::block_free : EventKind::block_alloc,
             .device = 0,
             .thread = thread,
             .address = address(slot),
             .size = 2 * kMiB - stack % 200 * 512,
             .stack = live[slot] ? 0 : stacks[stack]});
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
  double plain = 0;
  {
    // What a report would cost if nothing were attributed: find the moments, go to each of them.
    const Stopwatch watch("report, no attribution", events);
    const Timeline timeline = survey(*trace);
    const std::vector<Moment> moments = {find_moment(timeline, "peak", 0),
                                         find_moment(timeline, "allocated-peak", 0),
                                         find_moment(timeline, "", 0)};
    uint64_t live = 0;
    visit_states(*trace, moments, [&](size_t, const MemoryState& state) {
      state.for_each_live(0, [&](const Block& block) { live += block.size; });
    });
    plain = watch.elapsed();
  }
  {
    const Stopwatch watch("whole report", events);
    build_report(*trace, {});
    fmt::print("attribution adds {:.0f} % to the report\n", 100 * (watch.elapsed() / plain - 1));
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
