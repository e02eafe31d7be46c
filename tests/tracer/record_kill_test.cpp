// A process that is killed loses nothing that record() had returned from.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>

#include "progress.h"
#include "written_trace.h"

namespace {

void kill_at_random_moments(int times, const Environment& environment) {
  constexpr size_t kThreads = 3;
  std::mt19937 random(20);  // the moments, not what is checked
  for (int i = 0; i < times; ++i) {
    const TemporaryFolder folder;
    const Progress progress(folder.path / "progress");
    const pid_t writer = start_writer(
        folder.path, {"threads", std::to_string(kThreads), "0", "progress"}, environment);
    // From "not yet a file" to some sealed chunks.
    usleep(static_cast<useconds_t>(std::uniform_int_distribution<>(500, 60'000)(random)));
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    REQUIRE(WIFSIGNALED(status));

    const auto traces = traces_in(folder.path);
    uint64_t recorded = 0;
    for (size_t t = 0; t < kThreads; ++t) recorded += progress.of(t);
    if (recorded == 0) continue;
    REQUIRE(traces.size() == 1);
    const Contents contents = read_contents(traces[0]);
    CHECK_FALSE(contents.finished);
    CHECK(contents.dropped == 0);
    CHECK(contents.nameless == 0);
    CHECK(contents.in_order);
    for (size_t t = 0; t < kThreads; ++t) {
      const auto found = contents.events.find(t + 1);
      const auto numbers = found == contents.events.end() ? std::vector<uint64_t>{} : found->second;
      INFO("thread " << t << " had recorded " << progress.of(t) << ", the file has "
                     << numbers.size());
      CHECK(is_complete(numbers, progress.of(t)));
    }
  }
}

}  // namespace

TEST_CASE("SIGKILL at 200 random moments loses no event that was recorded") {
  kill_at_random_moments(200, {});
}

TEST_CASE("SIGKILL loses nothing in write mode either") {
  kill_at_random_moments(40, {{"VRAMTRACK_WRITE_MODE", "on"}});
}
