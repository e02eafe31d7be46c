// Audits of traces that were made to order: what each side saw is known.
#include <catch2/catch.hpp>

#include "diagnosis/witness/witness_audit.h"
#include "import/open.h"
#include "support/scratch.h"
#include "support/trace_writer.h"
#include "trace/input_error.h"

namespace vramtrack {
namespace {

using test::TraceWriter;

constexpr uint64_t kMs = 1'000'000;

// Both ledgers of one process; times in ms.
class Process {
 public:
  explicit Process(bool with_start = true) {
    if (with_start) note(CuptiNote::started, 0, "CUPTI 130001, libcupti.so.13");
  }

  void hook_alloc(uint64_t at, uint64_t address, uint64_t size, Memory memory = Memory::device) {
    writer.event({.kind = EventKind::physical_alloc,
                  .memory = memory,
                  .device = 0,
                  .time_ns = at * kMs,
                  .address = address,
                  .size = size,
                  .api = writer.text("cudaMalloc")});
  }
  void hook_free(uint64_t at, uint64_t address) {
    writer.event({.kind = EventKind::physical_free_begin, .time_ns = at * kMs, .address = address});
    writer.event({.kind = EventKind::physical_free_end, .time_ns = at * kMs, .address = address});
  }
  void cupti(int operation, uint64_t at, uint64_t address, uint64_t size,
             Memory memory = Memory::device, uint64_t correlation = 0) {
    writer.event({.kind = EventKind::cupti_memory,
                  .memory = memory,
                  .device = 0,
                  .address = address,
                  .size = size,
                  .requested = correlation,
                  .extra = at * kMs,
                  .result = operation});
  }
  void note(CuptiNote what, uint64_t at, std::string_view text, uint64_t lost = 0) {
    writer.event({.kind = EventKind::cupti_note,
                  .size = lost,
                  .extra = at * kMs,
                  .text = writer.text(text),
                  .result = static_cast<int32_t>(what)});
  }
  WitnessAudit audit() {
    const test::Scratch scratch;
    writer.save(scratch.folder() / "a.vrt");
    return audit_witnesses(*open_recording(scratch.folder() / "a.vrt"));
  }

  TraceWriter writer;
};

TEST_CASE("an address that comes again is paired in order") {
  Process process;
  for (uint64_t i = 0; i < 3; ++i) {
    process.hook_alloc(10 * i + 1, 0x1000, 512);
    process.hook_free(10 * i + 5, 0x1000);
    process.cupti(1, 10 * i + 1, 0x1000, 512);
    process.cupti(2, 10 * i + 5, 0x1000, 512);
  }
  process.note(CuptiNote::ended, 100, "the process ends");
  const WitnessAudit audit = process.audit();
  CHECK(audit.missed() == 0);
  CHECK(audit.allocations == 3);
  CHECK(audit.releases == 3);
  REQUIRE(audit.rows.count({"cudaMalloc", "(unknown)"}) == 1);
  CHECK(audit.rows.at({"cudaMalloc", "(unknown)"}).both == 3);
}

TEST_CASE("what CUPTI alone saw is named by the callback of its call") {
  Process process;
  process.hook_alloc(1, 0x1000, 512);
  process.cupti(1, 1, 0x1000, 512);
  process.hook_free(5, 0x1000);
  process.cupti(2, 5, 0x1000, 512);
  // The same address and size, unseen by the hooks; then seen again.
  process.writer.event({.kind = EventKind::cupti_call,
                        .requested = 77,
                        .api = process.writer.text("cuMemAlloc_v2")});
  process.cupti(1, 10, 0x1000, 512, Memory::device, 77);
  process.cupti(2, 15, 0x1000, 512);
  process.hook_alloc(20, 0x1000, 512);
  process.cupti(1, 20, 0x1000, 512);
  process.note(CuptiNote::ended, 100, "the process ends");
  const WitnessAudit audit = process.audit();
  REQUIRE(audit.only_cupti.size() == 2);
  CHECK(audit.only_cupti[0].time_ns == 10 * kMs);
  CHECK(audit.only_cupti[0].api == "cuMemAlloc_v2");
  CHECK(audit.only_cupti[1].time_ns == 15 * kMs);
  CHECK_FALSE(audit.only_cupti[1].allocation);
  CHECK(audit.only_hooks.empty());
  CHECK(audit.unseen_calls.empty());
  CHECK(audit.allocations == 2);
}

TEST_CASE("what the hooks alone saw, and a call for which CUPTI has no record") {
  Process process;
  process.hook_alloc(1, 0x1000, 512);
  process.hook_alloc(2, 0x2000, 4096);
  process.cupti(1, 1, 0x1000, 512);
  process.writer.event(
      {.kind = EventKind::cupti_call, .requested = 5, .api = process.writer.text("cuMemCreate")});
  process.writer.event({.kind = EventKind::cupti_call,
                        .requested = 6,
                        .api = process.writer.text("cuMemCreate"),
                        .result = 2});  // refused: nothing was handed out
  process.note(CuptiNote::ended, 100, "the process ends", 3);
  const WitnessAudit audit = process.audit();
  REQUIRE(audit.only_hooks.size() == 1);
  CHECK(audit.only_hooks[0].address == 0x2000);
  REQUIRE(audit.unseen_calls.size() == 1);
  CHECK(audit.unseen_calls[0].api == "cuMemCreate");
  CHECK(audit.missed() == 2);
  CHECK(audit.span.lost_records == 3);
}

TEST_CASE("the same size at another address, and another size at the same, are misses of both") {
  Process process;
  process.hook_alloc(1, 0x1000, 512);
  process.cupti(1, 1, 0x1000, 1024);
  process.hook_alloc(2, 0x3000, 512);
  process.cupti(1, 2, 0x4000, 512);
  process.note(CuptiNote::ended, 100, "the process ends");
  const WitnessAudit audit = process.audit();
  CHECK(audit.only_hooks.size() == 2);
  CHECK(audit.only_cupti.size() == 2);
}

TEST_CASE("the known exceptions are counted and not compared") {
  Process process;
  process.hook_alloc(1, 0x1000, 4096, Memory::registered);
  process.hook_alloc(2, 0x2000, 4096, Memory::graph);
  process.writer.event({.kind = EventKind::handle_create,
                        .memory = Memory::device,
                        .device = 0,
                        .size = 2 << 20,
                        .object = 9});
  process.cupti(1, 3, 0x5000, 64, Memory::module_data);
  // An array: our handle, CUPTI's address, and padding.
  process.hook_alloc(4, 0x77, 1000, Memory::array);
  process.cupti(1, 4, 0x9000, 1024, Memory::array);
  process.note(CuptiNote::ended, 100, "the process ends");
  const WitnessAudit audit = process.audit();
  CHECK(audit.missed() == 0);
  CHECK(audit.allocations == 1);
  REQUIRE(audit.exceptions.size() == 4);
  for (const Exception& exception : audit.exceptions) CHECK(exception.count == 1);
}

TEST_CASE("outside the witness's time nothing is compared") {
  SECTION("it stepped aside") {
    Process process;
    process.hook_alloc(1, 0x1000, 512);
    process.cupti(1, 1, 0x1000, 512);
    process.note(CuptiNote::stepped_aside, 50, "the program called cuptiSubscribe");
    process.hook_alloc(60, 0x2000, 512);
    const WitnessAudit audit = process.audit();
    CHECK(audit.missed() == 0);
    CHECK(audit.outside_span == 1);
    CHECK(audit.span.stepped_aside);
  }
  SECTION("the process was killed before the last flush") {
    Process process;
    process.hook_alloc(1, 0x1000, 512);
    process.cupti(1, 1, 0x1000, 512);
    process.hook_alloc(60, 0x2000, 512);
    const WitnessAudit audit = process.audit();
    CHECK(audit.missed() == 0);
    CHECK(audit.outside_span == 1);
    CHECK_FALSE(audit.span.closed);
  }
}

TEST_CASE("a recording without CUPTI is refused, with the reason where there is one") {
  Process nothing(false);
  nothing.hook_alloc(1, 0x1000, 512);
  CHECK_THROWS_AS(nothing.audit(), InputError);
  Process unavailable(false);
  unavailable.hook_alloc(1, 0x1000, 512);
  unavailable.note(CuptiNote::unavailable, 0, "no libcupti.so.13 was found");
  CHECK_THROWS_WITH(unavailable.audit(), Catch::Contains("no libcupti.so.13 was found"));
}

}  // namespace
}  // namespace vramtrack
