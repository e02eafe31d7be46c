// Drives record/ alone, without CUDA, as told by its arguments. Each event carries who wrote it
// (address) and which of its writer's it is (extra, from 1), so that a reader can tell what is
// missing. Progress is kept in a shared file: a number is stored there after record() returned.
//
//   record_writer threads THREADS EVENTS PROGRESS    0 events: for ever
//   record_writer churn THREADS EVENTS               THREADS threads, one after another, 80 at once
//   record_writer fork|_Fork|clone|_exit|abort|exec EVENTS
//   record_writer file-size-limit KIB EVENTS
//   record_writer idle EVENTS                        one thread records once and then waits
//   record_writer own-stderr EVENTS                  opens a file in the place of stderr
//   record_writer close-all EVENTS                   closes every descriptor in the middle
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "record/config.h"
#include "record/guard.h"
#include "record/process.h"
#include "record/recorder.h"

namespace {

using vramtrack::Event;
using vramtrack::EventKind;

void write_event(uint64_t writer, uint64_t number) {
  const vramtrack::Guard guard;
  Event event{.kind = EventKind::physical_alloc,
              .memory = vramtrack::Memory::device,
              .device = 0,
              .address = writer << 32,
              .size = number * 512,
              .extra = number};
  // Some texts are new, most are known.
  const std::string text = "call " + std::to_string(number % 97 == 0 ? number : number % 7);
  event.api = vramtrack::intern_string(text);
  vramtrack::record(event);
}

void write_events(uint64_t writer, uint64_t count, std::atomic<uint64_t>* progress = nullptr) {
  for (uint64_t i = 1; count == 0 || i <= count; ++i) {
    write_event(writer, i);
    if (progress != nullptr) progress->store(i, std::memory_order_release);
  }
}

std::atomic<uint64_t>* open_progress(const char* path) {
  const int fd = open(path, O_RDWR);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::exit(99);
  return static_cast<std::atomic<uint64_t>*>(memory);
}

int run_threads(uint64_t threads, uint64_t events, const char* progress_path) {
  std::atomic<uint64_t>* progress = open_progress(progress_path);
  std::vector<std::thread> workers;
  for (uint64_t t = 0; t < threads; ++t)
    workers.emplace_back([=] { write_events(t + 1, events, progress + t); });
  for (std::thread& worker : workers) worker.join();
  return 0;
}

int run_churn(uint64_t threads, uint64_t events) {
  constexpr uint64_t kAtOnce = 80;  // more than there are slots
  for (uint64_t first = 0; first < threads; first += kAtOnce) {
    std::vector<std::thread> workers;
    for (uint64_t t = first; t < threads && t < first + kAtOnce; ++t)
      workers.emplace_back([=] { write_events(t + 1, events); });
    for (std::thread& worker : workers) worker.join();
  }
  return 0;
}

pid_t make_child(const std::string& how) {
  if (how == "_Fork") return _Fork();
  if (how == "clone") return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  return fork();
}

// Parent 1, child 2, in turn.
int run_child(const std::string& how, uint64_t events) {
  write_events(1, events);
  const pid_t child = make_child(how);
  if (child == 0) {
    write_events(2, events);
    _exit(0);
  }
  write_events(3, events);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

int run_limited(uint64_t kib, uint64_t events) {
  write_events(1, 1);
  const rlimit limit{kib * 1024, kib * 1024};
  setrlimit(RLIMIT_FSIZE, &limit);
  write_events(2, events);
  std::printf("dropped %llu\n", static_cast<unsigned long long>(vramtrack::dropped_events()));
  return 0;
}

[[noreturn]] void run_with_idle_thread(uint64_t events) {
  std::atomic<bool> written{false};
  std::thread idle([&written] {
    write_event(1, 1);
    written = true;
    pause();
  });
  while (!written) sched_yield();
  write_events(2, events);
  _exit(0);  // the thread still waits
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 97;
  vramtrack::read_config();
  vramtrack::process_initialize();
  const std::string mode = argv[1];
  const auto number = [&](int i) { return i < argc ? std::strtoull(argv[i], nullptr, 10) : 0; };
  if (mode == "threads") return run_threads(number(2), number(3), argv[4]);
  if (mode == "churn") return run_churn(number(2), number(3));
  if (mode == "fork" || mode == "_Fork" || mode == "clone") return run_child(mode, number(2));
  if (mode == "file-size-limit") return run_limited(number(2), number(3));
  if (mode == "idle") run_with_idle_thread(number(2));
  write_events(1, number(2));
  if (mode == "_exit") _exit(0);
  if (mode == "abort") abort();
  if (mode == "exec") execl("/bin/true", "true", nullptr);
  if (mode == "own-stderr") {  // a file of the host's under the number of stderr
    close(STDERR_FILENO);
    return open("host-file", O_RDWR | O_CREAT | O_TRUNC, 0644) == STDERR_FILENO ? 0 : 94;
  }
  if (mode == "close-all") {
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    // A file of the host's that gets one of the numbers.
    const int mine = open("host-file", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int fd = mine + 1; fd < 1000; ++fd) dup2(mine, fd);
    write_events(2, number(2));
  }
  return 0;
}
