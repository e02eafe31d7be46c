#include "record/finish.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/slots.h"
#include "record/system_files.h"
#include "record/text.h"

// Of the C++ ABI. A handler without a library is not run when ours is finalised.
extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library);

namespace vramtrack {
namespace {

struct OutOfMemory {
  std::atomic<uint32_t> count{0};
  Event last{};  // of whoever came last; torn at worst, in a line for people
};

constinit OutOfMemory g_out_of_memory;

uint64_t event_count() {
  return next_sequence().load(std::memory_order_relaxed) - 1;
}

void append_totals() {
  FixedText<256> json;
  json.add("{\"events\":")
      .add(event_count())
      .add(",\"dropped\":")
      .add(dropped_events())
      .add(",\"out_of_memory\":")
      .add(uint64_t{g_out_of_memory.count.load(std::memory_order_relaxed)})
      .add(",\"time_ns\":")
      .add(trace_time_ns())
      .add("}");
  output_file().append_frame(FrameType::end, json.c_str(), json.size(), /*compress=*/false);
}

pid_t parent_of(pid_t process) {
  FixedText<64> path;
  path.add("/proc/").add(static_cast<uint64_t>(process)).add("/stat");
  char stat[512] = {};
  const size_t size = read_system_file(path.c_str(), stat, sizeof stat - 1);
  // "pid (name, which may hold anything) state ppid ..."
  const size_t close = std::string_view(stat, size).rfind(')');
  if (close == std::string_view::npos || close + 4 >= size) return 0;
  return static_cast<pid_t>(std::strtol(stat + close + 4, nullptr, 10));
}

// One line for a job: from the first process that wrote a trace. Those below it have an ancestor
// with the window of a trace in its address space.
bool speaks_for_the_job() {
  if (const char* rank = std::getenv("LOCAL_RANK"); rank != nullptr && std::strcmp(rank, "0") != 0)
    return false;
  pid_t ancestor = getppid();
  for (int i = 0; i < 32 && ancestor > 1; ++i) {
    FixedText<64> maps;
    maps.add("/proc/").add(static_cast<uint64_t>(ancestor)).add("/maps");
    if (system_file_contains(maps.c_str(), ".vrt\n")) return false;
    ancestor = parent_of(ancestor);
  }
  return true;
}

void say_where() {
  if (config().quiet || config().job_list != nullptr || !speaks_for_the_job()) return;
  FixedText<4400> line;
  line.add(output_path()).add(": ").add_size(output_file().size()).add(", ");
  line.add(event_count()).add(" events, ").add(dropped_events()).add(" dropped; ");
  if (g_out_of_memory.count.load(std::memory_order_relaxed) != 0) {
    const Event& e = g_out_of_memory.last;
    line.add("out of memory on device ")
        .add(static_cast<uint64_t>(e.device))
        .add(" (asked for ")
        .add_size(e.size)
        .add(", allocated ")
        .add_size(e.witness_allocated)
        .add(", reserved ")
        .add_size(e.witness_reserved)
        .add("); ");
  }
  line.add("next: vramtrack report ").add(output_path());
  say(line.c_str());
}

void finish(void* /*unused*/) {
  const Guard guard;
  if (output_path()[0] == '\0' || !is_running()) return;
  seal_all_slots();
  ring_finish();
  append_totals();
  output_file().header()->flags |= kFileFinished;
  output_file().commit_header();
  say_where();
}

// Our destructors run early, before those of the libraries that free the GPU memory. A handler that
// is registered now runs after all of them.
__attribute__((destructor)) void library_ends() {
  if (wanted()) __cxa_atexit(finish, nullptr, nullptr);
}

}  // namespace

void note_event(const Event& event) {
  if (event.kind != EventKind::out_of_memory) return;
  g_out_of_memory.last = event;
  g_out_of_memory.count.fetch_add(1, std::memory_order_relaxed);
}

void reset_finish() {
  g_out_of_memory.count.store(0, std::memory_order_relaxed);
}

}  // namespace vramtrack
