// The way to the simulated driver, which is looked for by its soname, as the real library does it.
#include <dlfcn.h>
#include <pthread.h>

#include "cupti/state.h"

namespace simgpu {
namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> g_connected{false};

void receive(const simgpu_activity* activity) {
  // What a call causes comes between its two ends; the subscriber is told of both.
  if (activity->kind == SIMGPU_CALL_BEGINS) make_records(*activity);
  if (activity->kind == SIMGPU_CALL_BEGINS || activity->kind == SIMGPU_CALL_ENDS)
    tell_subscriber(*activity);
  if (activity->kind != SIMGPU_CALL_BEGINS) make_records(*activity);
}

}  // namespace

bool connected() {
  return g_connected.load(std::memory_order_acquire);
}

bool connect() {
  if (connected()) return true;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  using Add = int (*)(simgpu_activity_sink);
  const auto add = reinterpret_cast<Add>(dlsym(driver, "simgpu_add_activity_sink"));
  if (add == nullptr) return false;  // a real driver: this library is out of place
  pthread_mutex_lock(&g_mutex);
  if (!connected()) g_connected.store(add(receive) != 0, std::memory_order_release);
  pthread_mutex_unlock(&g_mutex);
  return connected();
}

}  // namespace simgpu
