// A library that Python tests load with ctypes: capture_stack() with a recorder that keeps the
// definitions in memory and writes them to a file when asked. Stands in for the shim, so that the
// stacks can be tested without hooks, trace files and GPUs.
#include <vramtrack/trace_codec.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "record/recorder.h"
#include "stack/stack.h"

namespace vramtrack {
namespace {

std::mutex g_mutex;
std::string g_records;
std::map<std::string, uint32_t, std::less<>> g_strings;

}  // namespace

bool write_definition(const uint8_t* record, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  g_records.append(reinterpret_cast<const char*>(record), bytes);
  return true;
}

uint32_t intern_string(std::string_view text) {
  if (text.empty()) return 0;
  const std::lock_guard lock(g_mutex);
  const auto [entry, fresh] = g_strings.emplace(text, static_cast<uint32_t>(g_strings.size() + 1));
  if (fresh) {
    std::string record(1 + 2 * kMaxVarintBytes + text.size(), '\0');
    Writer writer(reinterpret_cast<uint8_t*>(record.data()));
    writer.byte(static_cast<uint8_t>(EventKind::define_string));
    writer.varint(entry->second);
    writer.varint(text.size());
    writer.bytes(text.data(), text.size());
    g_records.append(record, 0, writer.size());
  }
  return entry->second;
}
uint32_t reserve_string() {
  return 0;
}
bool define_string(uint32_t /*id*/, std::string_view /*text*/) {
  return false;
}

}  // namespace vramtrack

extern "C" {

__attribute__((visibility("default"))) uint32_t capture() {
  return vramtrack::capture_stack();
}

__attribute__((visibility("default"))) int64_t capture_many(int64_t times) {
  uint32_t id = 0;
  for (int64_t i = 0; i < times; ++i) id = vramtrack::capture_stack();
  return id;
}

// What qsort's and a C++ caller's frames look like between Python frames.
__attribute__((visibility("default"), noinline)) uint32_t call_back(uint32_t (*function)()) {
  const uint32_t id = function();
  asm volatile("" ::: "memory");  // no tail call: this frame is to be seen
  return id;
}

// On a thread that Python knows nothing of.
__attribute__((visibility("default"))) uint32_t on_plain_thread() {
  uint32_t id = 0;
  std::thread([&id] { id = vramtrack::capture_stack(); }).join();
  return id;
}

__attribute__((visibility("default"))) void after_fork() {
  vramtrack::g_records.clear();
  vramtrack::g_strings.clear();
  vramtrack::stacks_after_fork_child();
}

__attribute__((visibility("default"))) int save(const char* path) {
  const std::lock_guard lock(vramtrack::g_mutex);
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) return -1;
  std::fwrite(vramtrack::g_records.data(), 1, vramtrack::g_records.size(), file);
  return std::fclose(file);
}

__attribute__((constructor)) void start() {
  vramtrack::stacks_initialize();
}

}  // extern "C"
