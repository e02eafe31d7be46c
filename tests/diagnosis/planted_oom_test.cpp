// Recordings made to order, each with one cause planted: the verdict must name it. The published
// snapshot of a real OOM stands beside them.
#include <catch2/catch.hpp>

#include "diagnosis/oom/recording_diagnosis.h"
#include "import/open.h"
#include "support/scratch.h"
#include "support/trace_writer.h"

namespace vramtrack {
namespace {

constexpr uint64_t kMi = 1024 * 1024;
constexpr uint64_t kGi = 1024 * kMi;
constexpr uint64_t kTotal = 24 * kGi;
constexpr uint64_t kContext = kGi / 2;
constexpr int32_t kOutOfMemory = 2;

// A process with a caching allocator on a card of 24 GiB. Addresses are handed out in a row.
class Program {
 public:
  Program() {
    writer_.event({.kind = EventKind::device_info, .device = 0, .size = kTotal});
    line_ = stack("train.py", 10, "forward");
  }

  uint32_t stack(const char* file, uint32_t line, const char* function) {
    return writer_.stack({{function, file, line}});
  }
  // A segment of the allocator, filled by the blocks that follow.
  uint64_t segment(uint64_t size) {
    const uint64_t address = next_;
    next_ += size + 2 * kMi;
    writer_.alloc(address, size, line_);
    reserved_ += size;
    return address;
  }
  void block(uint64_t address, uint64_t size, uint32_t stack = 0) {
    writer_.block(address, size, stack != 0 ? stack : line_);
  }
  // A block with a segment of its own.
  uint64_t tensor(uint64_t size, uint32_t stack = 0) {
    const uint64_t address = segment(size);
    block(address, size, stack);
    return address;
  }
  void drop(uint64_t address, uint64_t size) { writer_.free_block(address, size); }
  void driver_memory(uint64_t size, uint32_t stack) {
    writer_.alloc(next_, size, stack);
    next_ += size + 2 * kMi;
    reserved_ += size;
  }
  void step(uint64_t number) { writer_.event({.kind = EventKind::step, .extra = number}); }
  void refuse(uint64_t size, Memory memory = Memory::device) {
    writer_.event({.kind = EventKind::physical_failed,
                   .memory = memory,
                   .device = 0,
                   .size = size,
                   .stack = line_,
                   .result = kOutOfMemory});
  }
  // What others hold, and what is free beside them.
  void measure(uint64_t others = 0) {
    const uint64_t used = reserved_ + kContext + others;
    writer_.event({.kind = EventKind::process_sample,
                   .device = 0,
                   .size = reserved_ + kContext,
                   .extra = others});
    writer_.event({.kind = EventKind::memory_sample,
                   .device = 0,
                   .size = used < kTotal ? kTotal - used : 0,
                   .extra = kTotal});
  }
  void give_up(uint64_t size) {
    writer_.event({.kind = EventKind::out_of_memory,
                   .device = 0,
                   .size = size,
                   .requested = size,
                   .stack = line_});
  }
  RecordingDiagnosis diagnose() {
    const auto path = scratch_.folder() / "planted.vrt";
    writer_.save(path);
    return diagnose_recording(*open_recording(path));
  }
  void metadata(const char* key, const char* value) { writer_.metadata(key, value); }

 private:
  test::Scratch scratch_;
  test::TraceWriter writer_;
  uint64_t next_ = 0x7f0000000000;
  uint64_t reserved_ = 0;
  uint32_t line_ = 0;
};

bool advises(const RecordingDiagnosis& diagnosis, const char* id) {
  for (const Advice& piece : diagnosis.advice) {
    if (piece.id == id) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("planted: everything is live and the request does not fit") {
  Program program;
  for (int i = 0; i < 22; ++i) program.tensor(kGi);
  program.measure();
  program.refuse(2 * kGi);
  program.give_up(2 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::capacity);
  CHECK(d.scene.ask == 2 * kGi);
  CHECK(d.scene.totals.allocated == 22 * kGi);
  REQUIRE(d.scene.free);
  CHECK(*d.scene.free == kTotal - 22 * kGi - kContext);
  CHECK(*d.scene.outside == kContext);
  CHECK(d.scene.request_site == "train.py:10 forward");
  CHECK_FALSE(advises(d, "expandable-segments"));
}

TEST_CASE("planted: live blocks pin half-empty segments") {
  Program program;
  std::vector<uint64_t> freed;
  for (int i = 0; i < 11; ++i) {
    const uint64_t address = program.segment(2 * kGi);
    program.block(address, kGi);
    program.block(address + kGi, kGi);
    freed.push_back(address);
  }
  for (const uint64_t address : freed) program.drop(address, kGi);
  program.measure();
  program.refuse(3 * kGi);
  program.give_up(3 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::fragmentation);
  CHECK(d.scene.space.total == 11 * kGi);
  CHECK(d.scene.space.largest == kGi);
  CHECK(d.scene.space.split_segments == 11);
  CHECK(advises(d, "expandable-segments"));
}

TEST_CASE("planted: the same with expandable segments in force") {
  Program program;
  program.metadata("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
  std::vector<uint64_t> freed;
  for (int i = 0; i < 11; ++i) {
    const uint64_t address = program.segment(2 * kGi);
    program.block(address, kGi);
    program.block(address + kGi, kGi);
    freed.push_back(address);
  }
  for (const uint64_t address : freed) program.drop(address, kGi);
  program.measure();
  program.refuse(3 * kGi);
  program.give_up(3 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::fragmentation);
  CHECK_FALSE(advises(d, "expandable-segments"));
  CHECK_FALSE(advises(d, "max-split-size"));
}

TEST_CASE("planted: a list keeps one more tensor each step") {
  Program program;
  const uint32_t keeper = program.stack("train.py", 31, "log_loss");
  program.tensor(4 * kGi);
  for (uint64_t step = 0; step < 16; ++step) {
    program.step(step);
    const uint64_t temporary = program.tensor(kGi);
    program.drop(temporary, kGi);
    program.tensor(kGi / 8, keeper);
  }
  // Fill the rest, so that the growth is what was missing.
  program.measure(kTotal - kContext - 4 * kGi - 16 * kGi - 16 * kGi / 8);
  program.refuse(kGi / 4);
  program.give_up(kGi / 4);
  auto d = program.diagnose();
  REQUIRE(d.scene.steps.size() >= 4);
  REQUIRE_FALSE(d.scene.growth.empty());
  CHECK(d.scene.growth.front().site == "train.py:31 log_loss");
}

TEST_CASE("planted: growth over steps that fills the card is a leak") {
  Program program;
  const uint32_t keeper = program.stack("train.py", 31, "log_loss");
  program.tensor(4 * kGi);
  for (uint64_t step = 0; step < 18; ++step) {
    program.step(step);
    program.tensor(kGi, keeper);
  }
  program.measure();
  program.refuse(2 * kGi);
  program.give_up(2 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::leak);
  CHECK(d.audit.confidence == Confidence::high);
  CHECK(d.audit.reason.find("train.py:31 log_loss") != std::string::npos);
}

TEST_CASE("planted: a neighbour holds two thirds of the card") {
  Program program;
  for (int i = 0; i < 6; ++i) program.tensor(kGi);
  program.measure(16 * kGi);
  program.refuse(2 * kGi);
  program.give_up(2 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::other_process);
  CHECK(advises(d, "other-processes"));
}

TEST_CASE("planted: another library of the process holds the card") {
  Program program;
  const uint32_t library = program.stack("cupy_pool.py", 5, "grow");
  for (int i = 0; i < 6; ++i) program.tensor(kGi);
  program.driver_memory(16 * kGi, library);
  program.measure();
  program.refuse(2 * kGi);
  program.give_up(2 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::outside);
  REQUIRE_FALSE(d.scene.direct_sites.empty());
  CHECK(d.scene.direct_sites.front().site == "cupy_pool.py:5 grow");
}

TEST_CASE("planted: a memory fraction refuses, the driver was not asked") {
  Program program;
  for (int i = 0; i < 11; ++i) program.tensor(kGi);
  program.measure();
  program.give_up(2 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::limit);
}

TEST_CASE("planted: one request is a third of everything") {
  Program program;
  for (int i = 0; i < 14; ++i) program.tensor(kGi);
  program.measure();
  program.refuse(10 * kGi);
  program.give_up(10 * kGi);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::transient_peak);
  CHECK(d.audit.reason.find("train.py:10") != std::string::npos);
}

TEST_CASE("planted: pinned host memory is refused") {
  Program program;
  program.driver_memory(kGi, program.stack("load.py", 3, "main"));
  program.measure();
  program.refuse(8 * kGi, Memory::pinned);
  const auto d = program.diagnose();
  CHECK(d.audit.verdict == OomVerdict::host_memory);
}

TEST_CASE("planted: a program without a caching allocator") {
  Program program;
  const uint32_t line = program.stack("sim.cpp", 12, "grid");
  for (int i = 0; i < 11; ++i) program.driver_memory(2 * kGi, line);
  program.measure();
  program.refuse(4 * kGi);
  const auto d = program.diagnose();
  CHECK(d.scene.found);
  CHECK(d.audit.verdict == OomVerdict::capacity);
}

TEST_CASE("planted: nothing failed") {
  Program program;
  program.tensor(kGi);
  program.measure();
  const auto d = program.diagnose();
  CHECK_FALSE(d.scene.found);
  CHECK(d.audit.verdict == OomVerdict::healthy);
  CHECK(d.advice.empty());
}

TEST_CASE("a refusal that the allocator got over is no OOM") {
  Program program;
  program.tensor(20 * kGi);
  program.measure();
  program.refuse(2 * kGi);
  program.tensor(kGi);
  const auto d = program.diagnose();
  CHECK_FALSE(d.scene.found);
  CHECK(d.scene.refused_by_driver == 1);
  CHECK(d.audit.verdict == OomVerdict::healthy);
}

// The figures are those of the snapshot's publisher and of an independent reader.
TEST_CASE("the published OOM on three GPUs") {
  const auto recording =
      open_recording(VRAMTRACK_TEST_DATA "/snapshots/oom-3gpu-expandable.pickle.zst");
  const auto d = diagnose_recording(*recording);
  CHECK(d.scene.device == 1);
  CHECK(d.audit.verdict == OomVerdict::capacity);
  CHECK(d.scene.ask == 5308694528);
  CHECK(*d.scene.free == 95682560);
  CHECK(d.scene.totals.allocated / kMi == 80169);
  CHECK(d.scene.request_site == "models.py:181 update_nodes");
  REQUIRE(d.scene.sites.size() >= 4);
  const uint64_t expected[] = {30391, 25314, 15188, 5063};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(d.scene.sites[i].site.find("models.py") != std::string::npos);
    CHECK((d.scene.sites[i].bytes + kMi / 2) / kMi == expected[i]);
  }
  CHECK((d.scene.live_at_end + kMi / 2) / kMi == 385);
  CHECK_FALSE(advises(d, "expandable-segments"));
}

TEST_CASE("a snapshot of one moment does not claim health") {
  const auto recording =
      open_recording(VRAMTRACK_TEST_DATA "/snapshots/many-free-blocks.pickle.zst");
  const auto d = diagnose_recording(*recording);
  CHECK_FALSE(d.scene.found);
  CHECK(d.audit.verdict == OomVerdict::undetermined);
}

}  // namespace vramtrack
