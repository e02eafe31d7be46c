// A ring forgets events and nothing else: what is live, where it came from and how high it went is
// known at any moment, whatever happens to the process. The witness is the writer's own script.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "progress.h"
#include "replay/timeline.h"
#include "ring_script.h"
#include "trace/trace_file.h"
#include "written_trace.h"

namespace {

using namespace vramtrack;
constexpr size_t kThreads = 2;

struct Found {
  std::map<uint64_t, std::map<uint64_t, uint64_t>> live;  // thread -> address -> size
  std::map<uint64_t, uint64_t> operations;                // the last of each thread
  uint64_t reserved = 0;
  uint64_t in_use = 0;
  uint64_t step = 0;
  uint64_t wrong_texts = 0;  // of blocks: phase, module
  size_t labelled = 0;
  size_t with_kernel = 0;
  bool in_order = true;
  Anomalies anomalies;
  RecordingInfo info;
};

Found read_trace(const std::filesystem::path& path) {
  Found found;
  const auto trace = open_trace(path);
  found.info = trace->info();
  MemoryState state;
  uint64_t before = 0;
  trace->for_each([&](const Event& event) {
    state.apply(event);
    if ((event.flags & kEventCarried) != 0) return true;
    found.in_order = found.in_order && event.sequence > before;
    before = event.sequence;
    const bool of_block =
        event.kind == EventKind::block_alloc || event.kind == EventKind::block_free;
    if (of_block && event.extra != 0) found.operations[event.address >> 32] = event.extra;
    return true;
  });
  const auto text = [&](StringId id) { return trace->definitions().string(id); };
  state.for_each_live(0, [&](const Block& block) {
    found.live[block.address >> 32][block.address] = block.size;
    found.wrong_texts += text(block.phase) == "outer" ? 0 : 1;
    found.labelled += text(block.label) == "weight" ? 1 : 0;
    found.with_kernel += text(block.kernel) == "gemm" ? 1 : 0;
  });
  found.reserved = state.totals(0).reserved;
  found.in_use = state.totals(0).in_use;
  found.step = state.step();
  found.anomalies = state.anomalies();
  return found;
}

// What the writer had live after the operations that the file shows. A thread that did nothing
// while the ring went round has none there: it had done what it said, or one more.
void check_live_set(const Found& found, const Progress& progress) {
  for (uint64_t thread = 1; thread <= kThreads; ++thread) {
    const uint64_t recorded = progress.of(thread);
    const auto done = found.operations.find(thread);
    const bool shown = done != found.operations.end();
    if (recorded == 0 && !shown) continue;  // it had hardly begun
    INFO("thread " << thread << " had recorded " << recorded << ", the file shows "
                   << (shown ? done->second : 0));
    const auto& live = found.live.at(thread);
    if (shown) {
      CHECK(done->second >= recorded);
      CHECK(live == ring_script::live_after(thread, done->second));
    } else {
      CHECK(found.info.ring);
      CHECK((live == ring_script::live_after(thread, recorded) ||
             live == ring_script::live_after(thread, recorded + 1)));
    }
  }
  CHECK(found.in_order);
  CHECK(found.wrong_texts == 0);
  CHECK(found.anomalies.unknown_frees == 0);
  CHECK(found.anomalies.overlapping_blocks == 0);
  CHECK(found.anomalies.overlapping_physical == 0);
  CHECK(found.anomalies.blocks_without_segment == 0);
}

pid_t start(const std::filesystem::path& folder, const std::string& operations,
            Environment environment) {
  environment.emplace_back("VRAMTRACK_RING", "1M");
  return start_program(RING_WRITER, folder, {std::to_string(kThreads), operations, "progress"},
                       environment);
}

int ended(pid_t writer) {
  int status = 0;
  waitpid(writer, &status, 0);
  return status;
}

// After so many operations of the first thread, and a moment.
void kill_at_random_moments(int times, const Environment& environment, uint64_t least,
                            uint64_t most) {
  std::mt19937 random(7);  // the moments, not what is checked
  int restarted = 0;
  for (int i = 0; i < times; ++i) {
    const TemporaryFolder folder;
    const Progress progress(folder.path / "progress");
    const pid_t writer = start(folder.path, "0", environment);
    const uint64_t operations = std::uniform_int_distribution<uint64_t>(least, most)(random);
    while (progress.of(1) < operations && waitpid(writer, nullptr, WNOHANG) == 0) usleep(100);
    usleep(std::uniform_int_distribution<useconds_t>(0, 1000)(random));
    kill(writer, SIGKILL);
    REQUIRE(WIFSIGNALED(ended(writer)));
    const Found found = read_trace(traces_in(folder.path).at(0));
    check_live_set(found, progress);
    CHECK(found.info.dropped_events == 0);
    if (found.info.ring) {
      ++restarted;
      CHECK(found.info.ring->complete);
    }
  }
  CHECK(restarted > times / 4);  // else the kills came before the ring went round
}

}  // namespace

TEST_CASE("a ring that went round many times has the live set, its segments and its peaks") {
  const TemporaryFolder folder;
  const Progress progress(folder.path / "progress");
  constexpr uint64_t kOperations = 400'000;
  REQUIRE(ended(start(folder.path, std::to_string(kOperations), {})) == 0);
  const std::filesystem::path file = traces_in(folder.path).at(0);
  const Found found = read_trace(file);
  check_live_set(found, progress);
  REQUIRE(found.info.ring);
  CHECK(found.info.ring->complete);
  CHECK(found.info.finished);
  CHECK(found.info.dropped_events == 0);
  const uint64_t segments = ring_script::kEmptySegmentBytes +
                            kThreads * (ring_script::kSlots + 1) * ring_script::kSlotBytes;
  CHECK(found.reserved == segments);  // the empty one is a segment still
  CHECK(found.in_use == segments);
  CHECK(found.step == kOperations / ring_script::kPerStep);
  CHECK(found.labelled == kThreads);
  CHECK(found.with_kernel == kThreads);
  REQUIRE(found.info.devices.size() == 1);
  CHECK(found.info.devices[0].name == "card");

  // The events themselves take no more than was allowed; the window and definitions come on top.
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  CHECK(static_cast<uint64_t>(status.st_blocks) * 512 < 8U << 20);

  // The driver's peak was before the ring: the given-back segment on top of what is there at first.
  const Timeline timeline = survey(*open_trace(file));
  REQUIRE(timeline.ring_begin);
  const auto driver =
      std::find_if(timeline.earlier_peaks.begin(), timeline.earlier_peaks.end(),
                   [](const EarlierPeak& peak) { return peak.what == RingPeak::driver; });
  REQUIRE(driver != timeline.earlier_peaks.end());
  CHECK(driver->bytes == std::max(2 * ring_script::kEmptySegmentBytes, segments));
}

TEST_CASE("a ring that is killed at random moments always has the live set") {
  kill_at_random_moments(25, {}, 0, 600'000);
}

TEST_CASE("likewise in write mode") {
  kill_at_random_moments(4, {{"VRAMTRACK_WRITE_MODE", "on"}}, 100'000, 400'000);
}

TEST_CASE("a ring can be read while it goes round") {
  const TemporaryFolder folder;
  const Progress progress(folder.path / "progress");
  const pid_t writer = start(folder.path, "0", {});
  while (progress.of(1) < 300'000 && waitpid(writer, nullptr, WNOHANG) == 0) usleep(1000);
  // Stopped, so that a slow machine does not let it overtake the reader again and again.
  int rounds = 0;
  for (int i = 0; i < 5; ++i) {
    kill(writer, SIGSTOP);
    REQUIRE(waitpid(writer, nullptr, WUNTRACED) == writer);
    const Found found = read_trace(traces_in(folder.path).at(0));
    // Before it goes on, or the progress is not that of the file.
    check_live_set(found, progress);
    kill(writer, SIGCONT);
    CHECK_FALSE(found.info.finished);
    const bool said =
        std::any_of(found.info.notes.begin(), found.info.notes.end(), [](const std::string& note) {
          return note.find("still being written") != std::string::npos;
        });
    CHECK(said);
    rounds += found.info.ring ? 1 : 0;
    usleep(50'000);
  }
  CHECK(rounds == 5);
  kill(writer, SIGKILL);
  ended(writer);
}
