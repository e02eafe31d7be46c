// job_writer STEPS [PAUSE_US]: the recording of a training job of so many steps (0: for ever)
// without PyTorch, through the tracer's own recording code, so that it takes seconds.
// VRAMTRACK_RING, VRAMTRACK_SAMPLE and VRAMTRACK_OUTPUT work as for any traced program;
// JOB_WITHOUT_STEPS leaves the step events out; JOB_KERNELS adds launches.
//
// Each step: blocks of 30 lines of job.py come and go, with sizes that vary; line 101 keeps a block
// of 64 KiB in every fourth step, line 102 one of 2 MiB in every fiftieth; line 103 fills a cache
// of 40 blocks and then replaces the oldest. With launches: every third of the 30 blocks waits for
// the next one's, every fifth launch says what it was given; and a second thread launches once in
// 8,000 steps and then makes two blocks that stay; line 101 keeps one in every hundredth step.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <vramtrack/trace_codec.h>

#include "hooks/sampling.h"
#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"

namespace {

using namespace vramtrack;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kSegment = uint64_t{1} << 34;
constexpr size_t kTemporaries = 30;

// A stack of one Python frame.
uint32_t line_of_job(uint32_t line) {
  static uint32_t next_id = 1;
  uint8_t buffer[256];
  Writer code(buffer);
  code.byte(static_cast<uint8_t>(EventKind::define_code));
  code.varint(line);
  code.varint(intern_string("train"));
  code.varint(intern_string("/job/job.py"));
  code.varint(line);
  code.varint(12);
  code.varint(0);
  write_definition(buffer, code.size());
  Writer stack(buffer);
  stack.byte(static_cast<uint8_t>(EventKind::define_stack));
  stack.varint(next_id);
  stack.varint(1);
  stack.varint(line * 2 + 1);
  stack.varint(0);
  write_definition(buffer, stack.size());
  return next_id++;
}

struct Held {
  uint64_t address;
  uint64_t size;
};

// What PyTorch's allocator does as far as a recording sees it: blocks in one large segment, and its
// own count with each.
class Allocator {
 public:
  Allocator() {
    Event segment{.kind = EventKind::physical_alloc,
                  .memory = Memory::device,
                  .device = 0,
                  .address = kBase,
                  .size = kSegment};
    record(segment);
  }
  Held allocate(uint64_t size, uint32_t stack) {
    std::vector<uint64_t>& free = free_[size];
    Held held{next_, size};
    if (free.empty()) {
      next_ += size;
    } else {
      held.address = free.back();
      free.pop_back();
    }
    allocated_ += size;
    Event event = about(EventKind::block_alloc, held);
    event.stack = stack;
    if (keep_allocation(event)) record(event);
    return held;
  }
  void release(const Held& held) {
    allocated_ -= held.size;
    free_[held.size].push_back(held.address);
    Event event = about(EventKind::block_free, held);
    if (keep_free(event)) record(event);
  }

 private:
  static constexpr uint64_t kBase = uint64_t{1} << 40;

  [[nodiscard]] Event about(EventKind kind, const Held& held) const {
    return {.kind = kind,
            .device = 0,
            .address = held.address,
            .size = held.size,
            .witness_allocated = allocated_,
            .witness_reserved = kSegment};
  }

  uint64_t next_ = kBase;
  uint64_t allocated_ = 0;
  std::map<uint64_t, std::vector<uint64_t>> free_;
};

void launch(const std::string& name) {
  Event event{.kind = EventKind::kernel, .device = 0, .text = intern_string(name)};
  record(event);
}

void define_access(uint32_t id, uint32_t text, uint64_t address) {
  uint8_t buffer[64];
  Writer access(buffer);
  access.byte(static_cast<uint8_t>(EventKind::define_access));
  access.varint(id);
  access.varint(text);
  access.varint(0);
  access.varint(1);
  access.varint(delta(address, 0));
  access.varint(0);
  write_definition(buffer, access.size());
}

// The same, with an address that it was given: its name is in the list.
void launch_with_address(const std::string& name, uint64_t address) {
  static uint32_t next_id = 1;
  static std::map<std::pair<std::string, uint64_t>, uint32_t> lists;
  const uint32_t text = intern_string(name);
  uint32_t& list = lists[{name, address}];
  if (list == 0) {
    list = next_id++;
    define_access(list, text, address);
  }
  Event event{.kind = EventKind::kernel_access, .device = 0, .extra = list};
  record(event, text);
}

// A thread of its own for as long as the job runs, that works while the job waits.
class SlowThread {
 public:
  explicit SlowThread(Allocator& allocator)
      : allocator_(allocator), line_(line_of_job(104)), thread_([this] { run(); }) {}
  SlowThread(const SlowThread&) = delete;
  SlowThread& operator=(const SlowThread&) = delete;
  ~SlowThread() {
    work(kEnd);
    thread_.join();
  }
  void work(int step) {
    step_.store(step);
    step_.notify_all();
    if (step != kEnd) step_.wait(step);
  }

 private:
  static constexpr int kIdle = -1;
  static constexpr int kEnd = -2;

  void run() {
    const Guard guard;
    for (step_.wait(kIdle); step_.load() != kEnd; step_.wait(kIdle)) {
      launch("slow " + std::to_string(step_.load()));
      allocator_.allocate(kMiB, line_);
      allocator_.allocate(kMiB, line_);
      step_.store(kIdle);
      step_.notify_all();
    }
  }

  Allocator& allocator_;
  const uint32_t line_;
  std::atomic<int> step_{kIdle};
  std::thread thread_;
};

class Job {
 public:
  Job() {
    Event card{.kind = EventKind::device_info, .device = 0, .size = uint64_t{80} << 30};
    card.text = intern_string("card");
    record(card);
    for (size_t i = 0; i < kTemporaries; ++i)
      temporaries_[i] = line_of_job(static_cast<uint32_t>(i + 1));
    for (uint32_t i = 0; i < 3; ++i) kept_[i] = line_of_job(101 + i);
    allocator_.allocate(512 * kMiB, line_of_job(90));  // parameters
  }

  void step(uint64_t number) {
    Event begin{.kind = EventKind::step, .extra = number};
    if (with_steps_) record(begin);
    std::array<Held, kTemporaries> held{};
    for (size_t i = 0; i < kTemporaries; ++i) {
      held[i] = allocator_.allocate((1 + (i * 7 + number) % 16) * 64 * 1024, temporaries_[i]);
      if (with_kernels_) launch_for(i, held[i]);
    }
    if (slow_ != nullptr && number % 8000 == 0) slow_->work(static_cast<int>(number));
    if (number % (with_kernels_ ? 100 : 4) == 0) allocator_.allocate(64 * 1024, kept_[0]);
    if (number % 50 == 0) allocator_.allocate(2 * kMiB, kept_[1]);
    cache_.push_back(allocator_.allocate(kMiB, kept_[2]));
    if (cache_.size() > 40) {
      allocator_.release(cache_.front());
      cache_.pop_front();
    }
    for (size_t i = kTemporaries; i-- > 0;) allocator_.release(held[i]);
  }

 private:
  void launch_for(size_t i, const Held& held) {
    if (i % 3 == 0) return;
    const std::string name = "kernel " + std::to_string(i);
    if (i % 5 == 1)
      launch_with_address(name, held.address);
    else
      launch(name);
  }

  const bool with_kernels_ = std::getenv("JOB_KERNELS") != nullptr;
  const bool with_steps_ = std::getenv("JOB_WITHOUT_STEPS") == nullptr;
  Allocator allocator_;
  std::unique_ptr<SlowThread> slow_ =
      with_kernels_ ? std::make_unique<SlowThread>(allocator_) : nullptr;
  std::array<uint32_t, kTemporaries> temporaries_{};
  std::array<uint32_t, 3> kept_{};
  std::deque<Held> cache_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 97;
  const uint64_t steps = std::strtoull(argv[1], nullptr, 10);
  const auto pause = static_cast<useconds_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  read_config();
  process_initialize();
  const Guard guard;
  Job job;
  for (uint64_t i = 0; steps == 0 || i < steps; ++i) {
    job.step(i);
    if (pause != 0) usleep(pause);
  }
  return 0;
}
