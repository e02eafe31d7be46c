#include "record/process.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "record/compress.h"
#include "record/config.h"
#include "record/file_name.h"
#include "record/finish.h"
#include "record/guard.h"
#include "record/metadata.h"
#include "record/recorder.h"
#include "record/ring.h"
#include "record/slots.h"
#include "record/strings.h"
#include "record/text.h"

namespace vramtrack {

thread_local constinit int t_inside = 0;

namespace {

enum State : uint32_t {
  kNotStarted = 0,  // what a wiped page reads as
  kStarting,
  kRunning,
  kOff,
};

struct WipedPage {
  std::atomic<uint32_t> state;
};

constinit WipedPage* g_page = nullptr;
constinit std::atomic<bool> g_disabled{false};  // inherited by children
constinit std::atomic<uint32_t> g_epoch{0};
constinit std::atomic<uint64_t> g_next_sequence{1};
constinit std::atomic<uint64_t> g_dropped{0};
constinit uint64_t g_start_monotonic_ns = 0;
constinit dev_t g_stderr_device = 0;
constinit ino_t g_stderr_inode = 0;
using Callback = void (*)();
constinit Callback g_child_callback = nullptr;
constinit OutputFile g_file;
constinit char g_path[4096] = {};

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Creates the file under the first name that is free.
const char* open_output(std::string_view metadata) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    Text path(g_path, sizeof g_path);
    choose_file_name(path, attempt);
    errno = 0;
    const char* why = g_file.create(g_path, metadata, kDefaultSlotBytes, kDefaultSlotCount,
                                    config().ring_bytes, kRingAreas);
    if (why == nullptr || errno != EEXIST) return why;
  }
  return "no free name";
}

bool start_recording() {
  const uint32_t epoch = g_epoch.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t realtime = clock_ns(CLOCK_REALTIME);
  g_start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  g_next_sequence.store(1, std::memory_order_relaxed);
  g_dropped.store(0, std::memory_order_relaxed);
  if (epoch > 1) {
    compress_after_fork();
    if (g_child_callback != nullptr) g_child_callback();
  }
  reset_strings();
  reset_slots();
  reset_finish();

  const char* why = open_output(make_metadata());
  if (why != nullptr) {
    FixedText<4400> text;
    text.add("cannot write ").add(g_path).add(": ").add(why).add("; nothing is recorded");
    g_path[0] = '\0';
    disable(text.c_str());
    return false;
  }
  FileHeader& header = *g_file.header();
  header.start_realtime_ns = realtime;
  header.start_monotonic_ns = g_start_monotonic_ns;
  if (config().sample_bytes != 0) header.flags |= kFileSampled;
  if (!ring_start()) {
    disable("cannot write the ring of the trace file; nothing is recorded");
    return false;
  }
  std::atomic_thread_fence(std::memory_order_release);
  // The magic last: before it the file is not a trace.
  for (size_t i = 0; i < sizeof header.magic; ++i) header.magic[i] = kFileMagic[i];
  if (!g_file.commit_header()) {
    disable("cannot write the header of the trace file; nothing is recorded");
    return false;
  }
  announce_file(g_path);
  return true;
}

// The thread that finds the state wiped starts; others wait a moment, and lose their event if the
// file system takes longer than that.
bool start() {
  uint32_t expected = kNotStarted;
  if (g_page->state.compare_exchange_strong(expected, kStarting)) {
    const bool ok = start_recording();
    g_page->state.store(ok ? kRunning : kOff, std::memory_order_release);
    return ok;
  }
  for (int i = 0; i < 2000 && expected == kStarting; ++i) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&pause, nullptr);
    expected = g_page->state.load(std::memory_order_acquire);
  }
  return expected == kRunning;
}

}  // namespace

void process_initialize() {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) == 0) {
    g_stderr_device = status.st_dev;
    g_stderr_inode = status.st_ino;
  }
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0) {
    // Linux before 4.14. Without it a child could write into its parent's window.
    g_disabled.store(true);
    return;
  }
  g_page = static_cast<WipedPage*>(page);
  initialize_thread_exit();
}

void call_in_children(void (*callback)()) {
  g_child_callback = callback;
}

bool wanted() {
  return g_page != nullptr && !g_disabled.load(std::memory_order_relaxed);
}

bool ensure_running() {
  if (!wanted()) return false;
  if (g_page->state.load(std::memory_order_acquire) == kRunning) return true;
  const int error = errno;
  const bool running = start();
  errno = error;
  return running;
}

bool is_running() {
  return wanted() && g_page->state.load(std::memory_order_acquire) == kRunning;
}

bool tracing() {
  return t_inside == 0 && is_running();
}

void disable(const char* why) {
  if (!g_disabled.exchange(true)) say(why);
}

// A program that closed stderr may have a file of its own under that number by now.
static bool stderr_is_the_users() {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) != 0) return false;
  return !S_ISREG(status.st_mode) ||
         (status.st_dev == g_stderr_device && status.st_ino == g_stderr_inode);
}

void say(const char* text) {
  if (!stderr_is_the_users()) return;
  FixedText<4608> line;
  line.add("vramtrack: ").add(text).add("\n");
  const ssize_t ignored = write(STDERR_FILENO, line.c_str(), line.size());
  static_cast<void>(ignored);
}

uint32_t recording_epoch() {
  return g_epoch.load(std::memory_order_relaxed);
}

uint64_t trace_time_ns() {
  return clock_ns(CLOCK_MONOTONIC) - g_start_monotonic_ns;
}

OutputFile& output_file() {
  return g_file;
}

const char* output_path() {
  return g_path;
}

std::atomic<uint64_t>& next_sequence() {
  return g_next_sequence;
}

uint64_t dropped_events() {
  return g_dropped.load(std::memory_order_relaxed);
}

void count_dropped(uint64_t events) {
  if (g_page == nullptr || g_page->state.load(std::memory_order_acquire) != kRunning) return;
  const uint64_t total = g_dropped.fetch_add(events, std::memory_order_relaxed) + events;
  std::atomic_ref<uint64_t>(g_file.header()->dropped_events)
      .store(total, std::memory_order_relaxed);
  // A mapped header needs no more; else often enough for the order of magnitude to survive a kill.
  if ((total & (total - 1)) == 0) g_file.commit_header();
}

}  // namespace vramtrack
