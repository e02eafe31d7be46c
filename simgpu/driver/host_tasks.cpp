#include "host_tasks.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace simgpu {
namespace {

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> tasks;
  std::uint64_t submitted = 0;
  std::atomic<std::uint64_t> done{0};
  bool started = false;
  pthread_t thread = {};
};

// Never destroyed: the thread may outlive every destructor.
Queue& queue() {
  static Queue* const the_queue = new Queue;
  return *the_queue;
}

void* run(void*) {
  Queue& q = queue();
  std::unique_lock lock(q.mutex);
  for (;;) {
    q.changed.wait(lock, [&] { return !q.tasks.empty(); });
    auto [ticket, task] = std::move(q.tasks.front());
    q.tasks.pop_front();
    lock.unlock();
    task();
    lock.lock();
    q.done.store(ticket, std::memory_order_release);
    q.changed.notify_all();
  }
  return nullptr;
}

}  // namespace

std::uint64_t submit_host_task(std::function<void()> task) {
  Queue& q = queue();
  std::unique_lock lock(q.mutex);
  if (!q.started) {
    if (pthread_create(&q.thread, nullptr, run, nullptr) != 0) {
      lock.unlock();
      task();
      return 0;
    }
    pthread_detach(q.thread);
    q.started = true;
  }
  std::uint64_t ticket = ++q.submitted;
  q.tasks.emplace_back(ticket, std::move(task));
  q.changed.notify_all();
  return ticket;
}

bool host_task_done(std::uint64_t ticket) {
  return ticket == 0 || queue().done.load(std::memory_order_acquire) >= ticket;
}

void wait_host_task(std::uint64_t ticket) {
  if (host_task_done(ticket)) return;
  Queue& q = queue();
  if (pthread_equal(q.thread, pthread_self()) != 0) return;
  std::unique_lock lock(q.mutex);
  q.changed.wait(lock, [&] { return q.done.load(std::memory_order_acquire) >= ticket; });
}

}  // namespace simgpu
