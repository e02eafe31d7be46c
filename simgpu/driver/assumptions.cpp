// What the simulation had to make up, counted by operation; and what it refuses, said once.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "driver.h"

namespace simgpu {
namespace {

// Few operations and many calls: a fixed table that is only ever added to, read without a lock.
struct Assumption {
  std::atomic<const char*> operation{nullptr};
  std::atomic<std::uint64_t> count{0};
};
constexpr int kMost = 512;
Assumption g_assumptions[kMost];
std::mutex g_mutex;

std::string escaped(const char* text) {
  std::string result;
  for (; *text != 0; ++text) {
    if (*text == '"' || *text == '\\') result += '\\';
    result += static_cast<unsigned char>(*text) < 0x20 ? ' ' : *text;
  }
  return result;
}

Assumption* find(const char* operation) {
  for (Assumption& known : g_assumptions) {
    const char* name = known.operation.load(std::memory_order_acquire);
    if (name == nullptr) return nullptr;
    if (name == operation || std::strcmp(name, operation) == 0) return &known;
  }
  return nullptr;
}

Assumption* add(const char* operation) {
  std::lock_guard lock(g_mutex);
  if (Assumption* known = find(operation)) return known;
  for (Assumption& slot : g_assumptions)
    if (slot.operation.load() == nullptr) {
      slot.operation.store(operation, std::memory_order_release);
      return &slot;
    }
  return nullptr;
}

// SIMGPU_ASSUMPTIONS=<file>: a line of JSON per process that had to assume something, at its exit.
__attribute__((destructor)) void write_assumptions() {
  const char* path = std::getenv("SIMGPU_ASSUMPTIONS");
  if (path == nullptr || *path == 0 || g_assumptions[0].operation.load() == nullptr) return;
  std::string line = "{\"pid\":" + std::to_string(getpid()) + ",\"assumed\":{";
  const char* separator = "";
  for (const Assumption& known : g_assumptions) {
    const char* name = known.operation.load(std::memory_order_acquire);
    if (name == nullptr) break;
    line += separator + ('"' + escaped(name)) + "\":" + std::to_string(known.count.load());
    separator = ",";
  }
  line += "}}\n";
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace

void assume(const char* operation, std::uint64_t count) {
  Assumption* assumption = find(operation);
  if (assumption == nullptr) assumption = add(operation);
  if (assumption != nullptr) assumption->count.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace simgpu

using namespace simgpu;

void simgpu_assume(const char* operation, uint64_t count) {
  if (operation != nullptr) assume(operation, count);
}

uint64_t simgpu_assumed(const char* operation) {
  const Assumption* known = operation == nullptr ? nullptr : find(operation);
  return known == nullptr ? 0 : known->count.load(std::memory_order_relaxed);
}

void simgpu_for_each_assumption(void (*visit)(const char*, uint64_t, void*), void* user) {
  for (const Assumption& known : g_assumptions) {
    const char* name = known.operation.load(std::memory_order_acquire);
    if (name == nullptr) return;
    visit(name, known.count.load(std::memory_order_relaxed), user);
  }
}

int simgpu_not_simulated(const char* name) {
  static std::mutex mutex;
  static auto& said = *new std::set<std::string, std::less<>>;
  std::lock_guard lock(mutex);
  if (said.emplace(name).second) std::fprintf(stderr, "simgpu: not simulated: %s\n", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}
