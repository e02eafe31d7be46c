// What leaks besides call sites: memory of the device that is not this process's, and processes
// that hold a context and do nothing. Times and sizes are given, so that every verdict is worked
// out by hand.
#include <catch2/catch.hpp>

#include "diagnosis/leaks/job_processes.h"
#include "diagnosis/leaks/leak_finder.h"
#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/trace_file.h"

namespace vramtrack {
namespace {

constexpr uint64_t kMi = 1024 * 1024;
constexpr uint64_t kSecond = 1'000'000'000;

// A job that holds a segment of 64 MiB; what else is used on its device is measured at each step.
LeakReport report_of(uint64_t growth_of_others) {
  constexpr uint64_t kTotal = 24 * 1024 * kMi;
  constexpr uint64_t kSegment = 0x7f0000000000;
  const test::Scratch scratch;
  test::TraceWriter writer;
  writer.event({.kind = EventKind::device_info, .device = 0, .size = kTotal});
  const uint32_t line = writer.stack({{"forward", "train.py", 10}});
  writer.alloc(kSegment, 64 * kMi, line);
  writer.block(kSegment, 8 * kMi, line);
  for (uint64_t step = 0; step < 40; ++step) {
    writer.event({.kind = EventKind::step, .extra = step});
    const uint64_t used = (64 + 500) * kMi + step * growth_of_others;
    writer.event(
        {.kind = EventKind::memory_sample, .device = 0, .size = kTotal - used, .extra = kTotal});
  }
  const auto path = scratch.folder() / "job.vrt";
  writer.save(path);
  const auto recording = open_trace(path);
  return find_leaks(*recording, survey(*recording));
}

TEST_CASE("memory of the device that is not this process's is told when it grows") {
  const LeakReport report = report_of(3 * kMi);
  REQUIRE(report.findings.size() == 1);
  const LeakFinding& finding = report.findings.front();
  CHECK(finding.kind == LeakFinding::Kind::outside_growth);
  CHECK_FALSE(is_leak(finding.kind));
  CHECK(finding.bytes_per_step == Approx(3 * kMi));
  // The last boundary is before the last step: 39 measurements, of which the first is 500 MiB.
  CHECK(finding.live_bytes == Approx((500 + 38 * 3) * kMi));
  CHECK(report_of(0).findings.empty());
}

JobProcess working(uint64_t pid, uint64_t begin, uint64_t last_work, uint64_t end) {
  JobProcess process;
  process.pid = pid;
  process.begin_ns = begin * kSecond;
  process.last_work_ns = last_work * kSecond;
  if (end != 0) process.end_ns = end * kSecond;
  process.holds_context = true;
  process.context_bytes = 400 * kMi;
  process.work = 100;
  return process;
}

TEST_CASE("a process that waits while another one works is forgotten") {
  const std::vector<JobProcess> job = {working(1, 1000, 1900, 1901), working(2, 1010, 1015, 1900)};
  const auto idle = idle_processes(job, 60);
  REQUIRE(idle.size() == 1);
  CHECK(job[idle[0].process].pid == 2);
  CHECK(idle[0].idle_s == Approx(885));
  CHECK(idle[0].others_s == Approx(885));
  CHECK(idle[0].alone_s == 0);
  CHECK(idle_processes(job, 1000).empty());
}

TEST_CASE("a process that stays when all others have gone is forgotten") {
  std::vector<JobProcess> job = {working(1, 1000, 1020, 1021), working(2, 1001, 1019, 1300)};
  job[1].running = true;
  const auto idle = idle_processes(job, 60);
  REQUIRE(idle.size() == 1);
  CHECK(job[idle[0].process].pid == 2);
  CHECK(idle[0].alone_s == Approx(1300 - 1021));
}

TEST_CASE("processes that work, end, or hold nothing are left in peace") {
  // Both to the end; one that ends when its work is done; one without a context.
  std::vector<JobProcess> job = {working(1, 1000, 1900, 1901), working(2, 1000, 1899, 1901),
                                 working(3, 1000, 1100, 1101), working(4, 1000, 1001, 1901)};
  job[3].holds_context = false;
  CHECK(idle_processes(job, 60).empty());
  CHECK(silent_processes(job, 60).empty());
}

TEST_CASE("jobs before and after in the same folder are no company") {
  // The second one sat idle at its end, alone, when the first was over and the third not begun.
  const std::vector<JobProcess> jobs = {working(1, 100, 200, 201), working(2, 1000, 1100, 1500),
                                        working(3, 2000, 2400, 2401)};
  CHECK(idle_processes(jobs, 60).empty());
}

TEST_CASE("of a process whose end is unknown nothing is claimed") {
  const std::vector<JobProcess> job = {working(1, 1000, 1900, 1901), working(2, 1010, 1015, 0)};
  CHECK(idle_processes(job, 60).empty());
  const auto silent = silent_processes(job, 60);
  REQUIRE(silent.size() == 1);
  CHECK(job[silent[0].process].pid == 2);
  CHECK(silent[0].others_s == Approx(885));
}

}  // namespace
}  // namespace vramtrack
